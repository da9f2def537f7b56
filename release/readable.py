"""A page of HTML as text to read: what `rustc` says of the licences of its library is one."""
from html.parser import HTMLParser


class Reader(HTMLParser):
    """Paragraphs as lines, what is laid out as it is; of two texts that are the same the second names the first."""

    BLOCKS = {"h1", "h2", "h3", "p", "div", "ul", "li", "details", "summary"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.lines, self.line, self.part, self.name = [], "", "", ""
        # What is in a `<pre>`, while in one; every one that was, with whose it is.
        self.laid_out, self.texts = None, {}
        self.is_head = False

    def handle_starttag(self, tag, attributes):
        if tag == "pre":
            self.end_line()
            self.laid_out = ""
        elif tag == "head":
            self.is_head = True
        elif tag in self.BLOCKS:
            self.end_line()
            if tag in ("h2", "h3"):
                self.lines.append("")

    def handle_endtag(self, tag):
        if tag == "pre":
            text = self.laid_out.replace("\r\n", "\n").rstrip().strip("\n")
            self.laid_out = None
            if first := self.texts.get(text):
                self.lines.append(f"(as {first})")
            else:
                self.texts[text] = f"{self.name} of {self.part}"
                self.lines.append("\n" + text + "\n")
        elif tag == "head":
            self.is_head = False
        elif tag in self.BLOCKS:
            text = self.end_line()
            if tag == "h3":
                self.part = text
            elif tag == "summary":
                self.name = text

    def handle_data(self, data):
        if self.laid_out is not None:
            self.laid_out += data
        elif not self.is_head:
            # Packages have a picture before their names.
            self.line += data.replace("\N{PACKAGE}", "")

    def end_line(self):
        text, self.line = " ".join(self.line.split()), ""
        if text:
            self.lines.append(text)
        return text


def readable(page):
    """The text, and how many texts were laid out in it."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    reader.end_line()
    return "\n".join(reader.lines), len(reader.texts)
