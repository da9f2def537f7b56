//! PDF files for tests, put together by hand so that they can be wrong in any way.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// Documents that wait before they are read, by name: one is read for each permit.
static HELD: LazyLock<Mutex<HashMap<String, Arc<Semaphore>>>> = LazyLock::new(Mutex::default);

/// Has documents of this name wait before they are read, one for each permit that is added.
pub(crate) fn hold(name: &str) -> Arc<Semaphore> {
    let mut held = HELD.lock();
    Arc::clone(
        held.entry(name.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(0))),
    )
}

pub(super) async fn wait_to_be_read(name: &str) {
    let held = HELD.lock().get(name).cloned();
    if let Some(held) = held {
        held.acquire().await.unwrap().forget();
    }
}

/// A PDF of objects, numbered from 1; the first is the catalog.
pub(crate) fn of_objects(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut pdf = b"%PDF-1.4\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (index, object) in objects.iter().enumerate() {
        writeln!(table, "{:010} 00000 n ", pdf.len()).unwrap();
        pdf.extend(format!("{} 0 obj\n", index + 1).as_bytes());
        pdf.extend(object);
        pdf.extend(b"\nendobj\n");
    }
    let start = pdf.len();
    let size = objects.len() + 1;
    pdf.extend(table.as_bytes());
    let end =
        format!("trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n");
    pdf.extend(end.as_bytes());
    pdf
}

/// A stream, with fields of its dictionary beside the length.
pub(crate) fn stream(fields: &str, content: &[u8]) -> Vec<u8> {
    let mut object = format!("<< {fields} /Length {} >>\nstream\n", content.len()).into_bytes();
    object.extend(content);
    object.extend(b"\nendstream");
    object
}

/// The objects of a file with these contents of pages: catalog, page tree, font, then a page and its content each.
pub(crate) fn objects(contents: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let kids = (0..contents.len()).map(|page| format!("{} 0 R", 4 + 2 * page));
    let kids = kids.collect::<Vec<_>>().join(" ");
    let count = contents.len();
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {count} /Resources << /Font << /F1 3 0 R >> >> >>")
            .into_bytes(),
        // Each letter is half as wide as it is high.
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>".to_vec(),
    ];
    for (page, content) in contents.iter().enumerate() {
        let content_id = 5 + 2 * page;
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {content_id} 0 R >>"
            )
            .into_bytes(),
        );
        objects.push(stream("", content));
    }
    objects
}

/// A PDF with pages that are drawn so.
pub(crate) fn drawn(contents: &[&str]) -> Vec<u8> {
    let contents: Vec<_> = contents.iter().map(|it| it.as_bytes().to_vec()).collect();
    of_objects(&objects(&contents), "")
}

/// A PDF with a line of text on each page.
pub(crate) fn pdf(lines: &[&str]) -> Vec<u8> {
    let contents: Vec<_> = lines
        .iter()
        .map(|line| format!("BT /F1 12 Tf 72 720 Td ({line}) Tj ET").into_bytes())
        .collect();
    of_objects(&objects(&contents), "")
}
