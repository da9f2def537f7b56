use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::pdf::read;
use super::testing::{drawn, objects, of_objects, pdf, stream};
use super::*;

fn whole(bytes: Vec<u8>) -> Result<PdfText, Unreadable> {
    let pages = Pages {
        first: 1,
        count: MAX_PAGES,
        max_bytes: MAX_TEXT_BYTES,
    };
    read(bytes, pages).and_then(PdfText::whole)
}

fn text(bytes: Vec<u8>) -> String {
    whole(bytes).unwrap().text
}

#[test]
fn words_and_lines_are_found_by_where_they_stand() {
    for (content, expected) in [
        ("(one line) Tj", "one line"),
        ("(Hel) Tj (lo) Tj", "Hello"),
        ("[(Hel) 20 (lo) -400 (you)] TJ", "Hello you"),
        ("(one) Tj 0 -14 Td (two) Tj", "one\ntwo"),
        ("14 TL (one) Tj T* (two) Tj (three) '", "one\ntwo\nthree"),
        // Three letters of a font that is 12 high are 18 wide.
        ("(one) Tj 18 0 Td (two) Tj", "onetwo"),
        ("(one) Tj 24 0 Td (two) Tj", "one two"),
        (
            "1 0 0 1 72 700 Tm (one) Tj 1 0 0 1 96 700 Tm (two) Tj 1 0 0 1 72 680 Tm (three) Tj",
            "one two\nthree",
        ),
        ("(one) Tj 18 4 Td (two) Tj", "onetwo"),
        ("(a\\000b\\007) Tj", "ab"),
    ] {
        let content = format!("BT /F1 12 Tf {content} ET");
        assert_eq!(text(drawn(&[&content])), expected, "{content}");
    }
    // What is moved as a whole, and text objects that follow each other on a line.
    let moved = "q 1 0 0 1 50 700 cm BT /F1 12 Tf (one) Tj ET Q q 1 0 0 1 74 700 cm BT /F1 12 Tf (two) Tj ET Q";
    assert_eq!(text(drawn(&[moved])), "one two");
}

#[test]
fn each_page_has_its_number_and_a_part_may_be_read() {
    let file = pdf(&["first", "second", "third"]);
    let all = "[page 1]\nfirst\n\n[page 2]\nsecond\n\n[page 3]\nthird";
    assert_eq!(text(file.clone()), all);
    for (first, count, max_bytes, expected, read_in_full) in [
        (2, 1, 1_000, "[page 2]\nsecond", 1),
        (3, 9, 1_000, "[page 3]\nthird", 1),
        (1, 2, 30, "[page 1]\nfirst\n\n[page 2]\nsecon", 1),
        (4, 1, 1_000, "", 0),
    ] {
        let pages = Pages {
            first,
            count,
            max_bytes,
        };
        let found = read(file.clone(), pages).unwrap();
        assert_eq!(
            (found.text.as_str(), found.read, found.pages),
            (expected, read_in_full, 3)
        );
    }
    assert_eq!(text(drawn(&["0 0 100 100 re f", ""])), "");
}

#[test]
fn a_form_is_part_of_the_page_that_uses_it() {
    let mut parts = objects(&[b"BT /F1 12 Tf 0 700 Td (before) Tj ET /X Do".to_vec()]);
    let resources = "/Resources << /Font << /F1 3 0 R >> /XObject << /X 6 0 R >> >>";
    parts[1] = format!("<< /Type /Pages /Kids [4 0 R] /Count 1 {resources} >>").into_bytes();
    // It draws itself too, without end.
    let content = b"BT /F1 12 Tf 0 600 Td (inside) Tj ET /X Do";
    parts.push(stream("/Type /XObject /Subtype /Form", content));
    let found = text(of_objects(&parts, ""));
    assert!(found.starts_with("before\ninside"), "{found}");
    assert!(found.len() < 100, "{found}");
}

/// Bytes that stand for 64 times as many spaces.
fn packed(spaces: usize) -> Vec<u8> {
    [129, b' '].repeat(spaces / 128)
}

#[test]
fn a_hostile_file_does_no_harm() {
    let good = pdf(&["one", "two"]);
    let with = |number: usize, object: Vec<u8>| {
        let mut objects = objects(&[b"BT /F1 12 Tf (one) Tj ET".to_vec()]);
        objects[number - 1] = object;
        of_objects(&objects, "")
    };
    let deep = |open: &str| open.repeat(200_000).into_bytes();
    let pages = |kids: &str, count: &str| {
        with(
            2,
            format!("<< /Type /Pages /Kids {kids} /Count {count} /Resources << /Font << /F1 3 0 R >> >> >>")
                .into_bytes(),
        )
    };
    let bomb = stream("/Filter /RunLengthDecode", &packed(32 * 1024 * 1024));
    let twice = stream(
        "/Filter [/RunLengthDecode /RunLengthDecode]",
        &packed(64 * 1024 * 1024),
    );
    let encrypted = |fields: &str| {
        let objects = objects(&[b"BT /F1 12 Tf (one) Tj ET".to_vec()]);
        let of = "<< /Filter /Standard /V 2 /R 3 /Length 128 /P -1 ";
        of_objects(
            &objects,
            &format!("/ID [<00> <00>] /Encrypt {of} {fields} >>"),
        )
    };
    let key = "41".repeat(32);
    let object_bomb = {
        let mut objects = objects(&[b"BT /F1 12 Tf (one) Tj ET".to_vec()]);
        objects.push(stream(
            "/Type /ObjStm /N 1 /First 4 /Filter /RunLengthDecode",
            &packed(32 * 1024 * 1024),
        ));
        of_objects(&objects, "")
    };
    let mut wrong = Vec::new();
    for (name, bytes, expected) in [
        (
            "cut in the middle",
            good[..good.len() / 3].to_vec(),
            Err(Unreadable::Damaged),
        ),
        (
            "nothing but its mark",
            b"%PDF-1.7\n".to_vec(),
            Err(Unreadable::Damaged),
        ),
        (
            "not a PDF at all",
            vec![7; 100_000],
            Err(Unreadable::Damaged),
        ),
        ("no bytes", Vec::new(), Err(Unreadable::Damaged)),
        (
            "a password",
            encrypted(&format!("/O <{key}> /U <{key}>")),
            Err(Unreadable::Protected),
        ),
        (
            "an encryption that is none",
            encrypted("/O 7"),
            Err(Unreadable::Protected),
        ),
        (
            "more pages declared than there are",
            pages("[4 0 R]", "10000"),
            Ok("one"),
        ),
        (
            "as many pages as a number holds",
            pages("[4 0 R]", "9223372036854775807"),
            Ok("one"),
        ),
        (
            "pages in themselves",
            pages("[2 0 R 2 0 R]", "2"),
            Err(Unreadable::Damaged),
        ),
        ("no pages", pages("[]", "0"), Err(Unreadable::Damaged)),
        (
            "content that unpacks to much",
            with(5, bomb),
            Err(Unreadable::Bomb),
        ),
        (
            "content that is packed twice",
            with(5, twice),
            Err(Unreadable::Bomb),
        ),
        (
            "objects that unpack to much",
            object_bomb,
            Err(Unreadable::Bomb),
        ),
        (
            "content nested deeply",
            with(5, stream("", &deep("["))),
            Ok(""),
        ),
        (
            "content nested deeply as dictionaries",
            with(5, stream("", &deep("<<"))),
            Ok(""),
        ),
        ("an object nested deeply", with(3, deep("[")), Ok("")),
        (
            "a font that is its own encoding",
            with(
                3,
                b"<< /Type /Font /Encoding 3 0 R /ToUnicode 3 0 R >>".to_vec(),
            ),
            Ok("one"),
        ),
        (
            "states without end",
            with(5, stream("", &b"q ".repeat(100_000))),
            Ok(""),
        ),
    ] {
        let outcome = whole(bytes).map(|found| found.text);
        if outcome != expected.map(str::to_owned) {
            wrong.push((name, outcome));
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn packed_objects_that_are_too_much_together_are_refused() {
    let mut objects = objects(&[b"BT /F1 12 Tf (one) Tj ET".to_vec()]);
    for number in 0..60 {
        // A string of 3 MB under a number of its own.
        let head = format!("{} 0 (", 1_000 + number);
        let mut content = vec![u8::try_from(head.len()).unwrap() - 1];
        content.extend(head.as_bytes());
        content.extend(packed(3 * 1024 * 1024));
        content.extend([0, b')', 128]);
        let fields = "/Type /ObjStm /N 1 /First 7 /Filter /RunLengthDecode";
        objects.push(stream(fields, &content));
    }
    let outcome = whole(of_objects(&objects, ""));
    // Whichever comes first, on a slow machine.
    assert!(
        matches!(outcome, Err(Unreadable::Bomb | Unreadable::Overdue)),
        "{outcome:?}"
    );
}

#[test]
fn every_beginning_of_a_file_is_read_or_refused() {
    let file = pdf(&["one", "two"]);
    for end in (0..file.len()).step_by(7) {
        let outcome = whole(file[..end].to_vec());
        assert!(
            !matches!(outcome, Err(Unreadable::Overdue | Unreadable::Busy)),
            "{end}"
        );
    }
    // One byte after the other is another one.
    for place in 0..file.len() {
        let mut file = file.clone();
        file[place] ^= 0x15;
        let outcome = whole(file);
        assert!(
            !matches!(outcome, Err(Unreadable::Overdue | Unreadable::Busy)),
            "{place}"
        );
    }
}

#[test]
fn what_is_more_than_is_taken_is_refused() {
    let line = "x".repeat(90_000);
    let many = vec![""; MAX_PAGES + 1];
    let pages = MAX_PAGES + 1;
    assert_eq!(whole(pdf(&many)), Err(Unreadable::TooManyPages { pages }));
    assert_eq!(whole(pdf(&[line.as_str(); 12])), Err(Unreadable::TooLong));
}

fn document(media_type: &str, data: Option<&[u8]>, text: Option<&str>) -> Document {
    Document {
        media_type: media_type.to_owned(),
        data: data.map(|data| STANDARD.encode(data)),
        text: text.map(str::to_owned),
        name: Some("a.x".to_owned()),
        pages: None,
    }
}

async fn taken(document: Document) -> Result<Document, String> {
    let mut parts = [Part::text("look"), Part::Document(document)];
    Reader::default().read("content", &mut parts).await?;
    let [_, Part::Document(document)] = parts else {
        panic!("the document is none any more");
    };
    Ok(document)
}

#[tokio::test]
async fn what_is_taken_has_its_text_beside_it() {
    let file = pdf(&["one", "two"]);
    let read = taken(document("Application/PDF; x=y", Some(&file), None))
        .await
        .unwrap();
    assert_eq!(read.media_type, PDF);
    assert_eq!(
        (read.text(), read.pages),
        ("[page 1]\none\n\n[page 2]\ntwo", Some(2))
    );
    assert_eq!(read.pdf().map(str::len), Some(STANDARD.encode(&file).len()));
    // It is not read again.
    let told = Document {
        text: Some("told".to_owned()),
        ..read
    };
    assert_eq!(taken(told.clone()).await.unwrap(), told);
    for (given, expected) in [
        (document("text/plain", Some("ä".as_bytes()), None), "ä"),
        (document("text/markdown", None, Some("# a")), "# a"),
        (
            document("text/csv; charset=utf-8", Some(b"\xEF\xBB\xBFa,b"), None),
            "a,b",
        ),
        (
            document("application/json", Some(b"\xFF\xFE{\0}\0"), None),
            "{}",
        ),
        (document(PDF, None, Some("its text")), "its text"),
    ] {
        let taken = taken(given).await.unwrap();
        assert_eq!((taken.text(), &taken.data), (expected, &None));
    }
}

#[tokio::test]
async fn what_is_not_taken_is_refused_in_words() {
    let named = |name: String| Document {
        name: Some(name),
        ..document("text/plain", None, Some("a"))
    };
    for (given, expected) in [
        (
            document("application/zip", Some(b"PK"), None),
            "is of type \"application/zip\"",
        ),
        (document(PDF, Some(b"PK"), None), "is no PDF"),
        (document(PDF, Some(b"%PDF-1.4"), None), "is damaged"),
        (document(PDF, None, None), "has neither"),
        (document("text/plain", None, None), "must have either"),
        (
            document("text/plain", Some(b"a"), Some("a")),
            "must have either",
        ),
        (
            document("text/plain", Some(b"a\xFFb"), None),
            "is no text in UTF-8",
        ),
        (
            document("text/plain", Some(b"a\0b"), None),
            "is no text in UTF-8",
        ),
        (document("text/plain", None, Some(" \n")), "is empty"),
        (
            document("text/plain", None, Some(&"x".repeat(MAX_TEXT_BYTES + 1))),
            "has about 1000001 bytes",
        ),
        (
            document("text/plain", Some(&vec![b'x'; 2 * MAX_TEXT_BYTES]), None),
            "has about 2000001 bytes",
        ),
        (named("a\nb".to_owned()), "must have a name"),
        (named("x".repeat(256)), "must have a name"),
    ] {
        let name = given.name().to_owned();
        let error = taken(given).await.unwrap_err();
        let start = format!("field `content[1]`: the document {name:?} {expected}");
        assert!(error.starts_with(&start), "{error}");
    }
    let one = Part::Document(document("text/plain", None, Some("a")));
    let mut many = vec![one; MAX_DOCUMENTS + 1];
    let error = Reader::default()
        .read("content", &mut many)
        .await
        .unwrap_err();
    assert!(error.contains("more than 10 documents"), "{error}");
    let unread = Part::Document(document(PDF, Some(&pdf(&["a"])), None));
    let mut reader = Reader::default();
    for left in (0..=MAX_DOCUMENTS).rev() {
        let outcome = reader
            .read("history", std::slice::from_mut(&mut unread.clone()))
            .await;
        assert_eq!(outcome.is_ok(), left > 0, "{outcome:?}");
    }
}
