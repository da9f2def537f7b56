//! The text of a page, in the order in which the page draws it.
//!
//! A page says where pieces of text stand, not where words and lines end. A piece that stands lower or higher than where
//! the one before it ended begins a line, and one that stands away from it a word.

use std::collections::HashMap;

use lopdf::content::{Content, Operation};
use lopdf::{DecompressError, Dictionary, Document, Error, Object, ObjectId};

use super::font::Font;
use super::{Flow, look_at_the_clock};

/// The most bytes that a page's content is inflated to. Pages of text have a hundredth of it; what has more is a drawing.
const MAX_CONTENT: usize = 16 * 1024 * 1024;

/// How deep forms may stand in each other, which are pages within pages.
const MAX_DEPTH: usize = 4;

/// The most states of the page that are kept, to come back to.
const MAX_STATES: usize = 64;

/// The most fonts of a file that are kept.
const MAX_FONTS: usize = 512;

/// From how much of the size of the font on a piece is on another line, and from how much of it on another word.
const LINE: f32 = 0.5;
const WORD: f32 = 0.15;

/// The content of a page is more than is read.
pub(super) struct TooLarge;

/// The fonts of a file, each read once.
pub(super) struct Fonts<'a> {
    document: &'a Document,
    known: HashMap<*const Dictionary, Option<Font<'a>>>,
}

impl<'a> Fonts<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self {
            document,
            known: HashMap::new(),
        }
    }

    fn get(&mut self, font: &'a Dictionary) -> Option<&Font<'a>> {
        if self.known.len() >= MAX_FONTS {
            self.known.clear();
        }
        let document = self.document;
        let font = self
            .known
            .entry(std::ptr::from_ref(font))
            .or_insert_with(|| Font::of(font, document));
        font.as_ref()
    }
}

/// Adds the text of a page to `text`, which ends at `most` bytes.
pub(super) fn read(
    fonts: &mut Fonts<'_>,
    page: ObjectId,
    most: usize,
    text: &mut String,
) -> Result<Flow, TooLarge> {
    let document = fonts.document;
    let mut resources = Vec::new();
    if let Ok((own, inherited)) = document.get_page_resources(page) {
        resources.extend(own);
        let inherited = inherited.into_iter();
        resources.extend(inherited.filter_map(|id| document.get_dictionary(id).ok()));
    }
    let content = document.get_page_content_with_limit(page, MAX_CONTENT);
    let content = match content {
        Ok(content) => content,
        Err(Error::Decompress(DecompressError::MemoryLimitExceeded { .. })) => {
            return Err(TooLarge);
        }
        // An empty page, to a viewer.
        Err(_) => return Ok(Flow::Continue(())),
    };
    let mut walk = Walk {
        fonts,
        text,
        most,
        budget: MAX_CONTENT,
        end: None,
    };
    Ok(walk.content(&content, &resources, Matrix::IDENTITY, MAX_DEPTH))
}

struct Walk<'w, 'a> {
    fonts: &'w mut Fonts<'a>,
    text: &'w mut String,
    most: usize,
    /// How many bytes of forms may still be inflated on this page.
    budget: usize,
    /// Where the last piece of text ended on the page.
    end: Option<(f32, f32)>,
}

/// What `q` saves and `Q` restores.
#[derive(Clone, Copy)]
struct State<'a> {
    place: Matrix,
    font: Option<&'a Dictionary>,
    size: f32,
    leading: f32,
}

/// Where text is written next.
struct Pen {
    /// Where the line begins.
    line: Matrix,
    /// How far into the line it is.
    along: f32,
}

impl<'a> Walk<'_, 'a> {
    fn content(
        &mut self,
        content: &[u8],
        resources: &[&'a Dictionary],
        base: Matrix,
        depth: usize,
    ) -> Flow {
        let mut state = State {
            place: base,
            font: None,
            size: 1.0,
            leading: 0.0,
        };
        let mut states = Vec::new();
        let mut pen = Pen {
            line: Matrix::IDENTITY,
            along: 0.0,
        };
        for operation in Content::decode_iter(content) {
            look_at_the_clock();
            // What is behind something that cannot be read is read by no viewer either.
            let Ok(operation) = operation else {
                break;
            };
            let numbers = Numbers(&operation);
            match operation.operator.as_str() {
                "q" if states.len() < MAX_STATES => states.push(state),
                "Q" => state = states.pop().unwrap_or(state),
                "cm" => state.place = numbers.matrix().times(state.place),
                "BT" => pen.begin(Matrix::IDENTITY),
                "Tm" => pen.begin(numbers.matrix()),
                "Tf" => {
                    let name = operation.operands.first().and_then(|it| it.as_name().ok());
                    state.font = name.and_then(|name| self.font(name, resources));
                    state.size = numbers.at(1);
                }
                "TL" => state.leading = numbers.at(0),
                "Td" => pen.go(numbers.at(0), numbers.at(1)),
                "TD" => {
                    state.leading = -numbers.at(1);
                    pen.go(numbers.at(0), numbers.at(1));
                }
                "T*" => pen.go(0.0, -state.leading),
                "Tj" => self.show(&mut pen, &state, operation.operands.first())?,
                "TJ" => self.show_all(&mut pen, &state, operation.operands.first())?,
                "'" | "\"" => {
                    pen.go(0.0, -state.leading);
                    self.show(&mut pen, &state, operation.operands.last())?;
                }
                "Do" if depth > 0 => {
                    let name = operation.operands.first().and_then(|it| it.as_name().ok());
                    if let Some(name) = name {
                        self.form(name, resources, state.place, depth - 1)?;
                    }
                }
                _ => {}
            }
        }
        Flow::Continue(())
    }

    /// Returns a font of the resources by its name.
    fn font(&self, name: &[u8], resources: &[&'a Dictionary]) -> Option<&'a Dictionary> {
        self.object(b"Font", name, resources)?.as_dict().ok()
    }

    fn object(&self, kind: &[u8], name: &[u8], resources: &[&'a Dictionary]) -> Option<&'a Object> {
        let document = self.fonts.document;
        resources.iter().find_map(|resources| {
            let named = resources.get_deref(kind, document).ok()?.as_dict().ok()?;
            named.get_deref(name, document).ok()
        })
    }

    /// Goes through a form, which is content that several pages may share.
    fn form(
        &mut self,
        name: &[u8],
        resources: &[&'a Dictionary],
        place: Matrix,
        depth: usize,
    ) -> Flow {
        let document = self.fonts.document;
        let object = self.object(b"XObject", name, resources);
        let Some(form) = object.and_then(|object| object.as_stream().ok()) else {
            return Flow::Continue(());
        };
        let kind = form.dict.get(b"Subtype").and_then(Object::as_name);
        if !matches!(kind, Ok(b"Form")) {
            return Flow::Continue(());
        }
        let Ok(content) = form.get_plain_content_with_limit(self.budget) else {
            return Flow::Continue(());
        };
        self.budget = self.budget.saturating_sub(content.len());
        let own = form.dict.get_deref(b"Resources", document);
        let own = own.and_then(Object::as_dict).ok();
        let matrix = form.dict.get_deref(b"Matrix", document);
        let matrix = matrix.and_then(Object::as_array).ok();
        let matrix = matrix.map_or(Matrix::IDENTITY, |numbers| Matrix::of(numbers));
        let inner: Vec<_> = own.into_iter().chain(resources.iter().copied()).collect();
        self.content(&content, &inner, matrix.times(place), depth)
    }

    fn show_all(&mut self, pen: &mut Pen, state: &State<'a>, pieces: Option<&Object>) -> Flow {
        let pieces = pieces.and_then(|pieces| pieces.as_array().ok());
        for piece in pieces.into_iter().flatten() {
            match piece.as_float() {
                Ok(back) => pen.along -= back / 1000.0 * state.size,
                Err(_) => self.show(pen, state, Some(piece))?,
            }
        }
        Flow::Continue(())
    }

    fn show(&mut self, pen: &mut Pen, state: &State<'a>, string: Option<&Object>) -> Flow {
        let font = state.font.and_then(|font| self.fonts.get(font));
        let string = string.and_then(|string| string.as_str().ok());
        let (Some(font), Some(string)) = (font, string) else {
            return Flow::Continue(());
        };
        let matrix = pen.line.times(state.place);
        let size = (matrix.scale() * state.size).abs();
        let start = matrix.point(pen.along);
        let mut said = String::new();
        pen.along += font.show(string, &mut said) / 1000.0 * state.size;
        said.retain(|letter| !letter.is_control());
        if said.is_empty() {
            return Flow::Continue(());
        }
        if let Some(end) = self.end {
            let (right, down) = (start.0 - end.0, start.1 - end.1);
            if down.abs() > LINE * size {
                self.break_with('\n');
            } else if right.abs() > WORD * size && !said.starts_with(' ') {
                self.break_with(' ');
            }
        }
        self.end = Some(matrix.point(pen.along));
        let room = self.most.saturating_sub(self.text.len());
        if said.len() > room {
            said.truncate(said.floor_char_boundary(room));
            self.text.push_str(&said);
            return Flow::Break(());
        }
        self.text.push_str(&said);
        Flow::Continue(())
    }

    fn break_with(&mut self, gap: char) {
        if gap == '\n' {
            self.text.truncate(self.text.trim_end_matches(' ').len());
        }
        if !self.text.ends_with([' ', '\n']) {
            self.text.push(gap);
        }
    }
}

impl Pen {
    fn begin(&mut self, line: Matrix) {
        self.line = line;
        self.along = 0.0;
    }

    fn go(&mut self, right: f32, up: f32) {
        let step = Matrix([1.0, 0.0, 0.0, 1.0, right, up]);
        self.begin(step.times(self.line));
    }
}

/// The operands of an operation as numbers; 0 where there is none.
struct Numbers<'o>(&'o Operation);

impl Numbers<'_> {
    fn at(&self, index: usize) -> f32 {
        let operand = self.0.operands.get(index);
        operand.and_then(|it| it.as_float().ok()).unwrap_or(0.0)
    }

    fn matrix(&self) -> Matrix {
        Matrix::of(&self.0.operands)
    }
}

/// How places are moved and scaled, as PDF writes it.
#[derive(Clone, Copy)]
struct Matrix([f32; 6]);

impl Matrix {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    fn of(numbers: &[Object]) -> Self {
        let mut matrix = Self::IDENTITY;
        for (value, number) in matrix.0.iter_mut().zip(numbers) {
            *value = number.as_float().unwrap_or(*value);
        }
        matrix
    }

    /// Returns what does this first and then the other.
    fn times(self, other: Self) -> Self {
        let [a, b, c, d, e, f] = self.0;
        let [g, h, i, j, k, l] = other.0;
        Self([
            a * g + b * i,
            a * h + b * j,
            c * g + d * i,
            c * h + d * j,
            e * g + f * i + k,
            e * h + f * j + l,
        ])
    }

    fn scale(self) -> f32 {
        let [a, b, ..] = self.0;
        a.hypot(b)
    }

    /// Returns where a point of the line is.
    fn point(self, along: f32) -> (f32, f32) {
        let [a, b, _, _, e, f] = self.0;
        (a * along + e, b * along + f)
    }
}
