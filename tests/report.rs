//! Reports: what pages show, and that nothing in a sheet breaks them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shapes;
use mmaprobe::bits::hex;
use mmaprobe::catalog::{Catalog, published};
use mmaprobe::device::Instruction;
use mmaprobe::device::replay::Replay;
use mmaprobe::generate::{Source, evidence};
use mmaprobe::model::format::FP32;
use mmaprobe::model::{Format, Model};
use mmaprobe::report::overview::Overview;
use mmaprobe::report::page::Page;
use mmaprobe::report::special::cases;
use mmaprobe::report::{parameters, report, significands, tree};
use mmaprobe::sheet::schema::{Ambiguity, Counterexample, Statement};
use mmaprobe::sheet::{Status, load, write};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn source(sheet: &str) -> Source {
    let path = root().join(sheet);
    let name = path.file_stem().unwrap().to_str().unwrap().to_string();
    Source { name, sheet: load(&path).unwrap(), recorded: None }
}

fn published() -> Vec<Source> {
    let catalog = Catalog::embedded();
    let sheets = catalog.architectures().iter().filter_map(published::sheet);
    sheets.map(|sheet| Source { name: sheet.device.name.clone(), sheet, recorded: None }).collect()
}

const CPU: &str = "reports/measured/intel-xeon-6-207";

/// What was measured, with its recording.
fn measured() -> Source {
    let replay = Replay::open(root().join(format!("{CPU}.rec"))).unwrap();
    Source { recorded: Some(evidence::recorded(&replay).unwrap()), ..source(&format!("{CPU}.yaml")) }
}

/// The tags of a page, in order, each with its attributes: fails where they are not nested.
fn tags(html: &str) -> Vec<(String, String)> {
    const EMPTY: [&str; 2] = ["meta", "br"];
    let mut open: Vec<String> = Vec::new();
    let mut tags = Vec::new();
    let body = html.strip_prefix("<!doctype html>").unwrap();
    let (before, styled) = body.split_once("<style>").unwrap();
    let (_, after) = styled.split_once("</style>").unwrap();
    for part in format!("{before}{after}").split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("<{part}"));
        assert!(!text.contains('>'), "a stray >: {text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (name, attributes) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
        let closed = attributes.ends_with('/');
        if !closed && !EMPTY.contains(&name) {
            open.push(name.to_string());
        }
        tags.push((name.to_string(), attributes.trim_end_matches('/').to_string()));
    }
    assert_eq!(open, Vec::<String>::new());
    tags
}

/// Fails if a page runs, fetches or refers to anything but itself and its neighbours.
fn is_sound(html: &str) {
    const KNOWN: &str = "html head meta title body nav main section h1 h2 h3 h4 p a code strong em span sup ul li \
                         dl dt dd div table caption thead tbody tr th td details summary br \
                         svg defs pattern rect path line text";
    let known: BTreeSet<&str> = KNOWN.split(' ').collect();
    for (name, attributes) in tags(html) {
        assert!(known.contains(name.as_str()), "<{name} {attributes}>");
        let mut rest = attributes.as_str();
        while let Some((attribute, value)) = rest.split_once("=\"") {
            let attribute = attribute.trim();
            let (value, after) = value.split_once('"').unwrap();
            rest = after;
            assert!(
                !attribute.starts_with("on") && attribute != "src" && attribute != "style",
                "{attribute}"
            );
            if attribute == "href" {
                let is_neighbour = value.ends_with(".html") && !value.contains([':', '/']);
                assert!(value.starts_with('#') || is_neighbour, "{value}");
            }
            assert!(!value.contains("url(") || value.starts_with("url(#"), "{value}");
        }
    }
    // The style sheet fetches nothing either.
    let (style, _) = html.split_once("<style>").unwrap().1.split_once("</style>").unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"));
}

/// Fails if Markdown has tags other than those that pages use, or tables with ragged rows.
fn is_sound_markdown(markdown: &str) {
    let mut is_code = false;
    let mut columns = None;
    for line in markdown.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        // What is escaped, or in a code span, is no markup.
        let plain = line.replace("\\<", "").replace("\\>", "").replace("\\|", "").replace("\\`", "");
        let outside: String = plain.split('`').step_by(2).collect();
        for part in outside.split('<').skip(1) {
            let is_known = ["details>", "/details>", "summary>", "/summary>", "br>", "a id=\"i", "/a>"]
                .iter()
                .any(|known| part.starts_with(known));
            assert!(is_known, "{line}");
        }
        let cells = line
            .starts_with('|')
            .then(|| plain.split('`').step_by(2).collect::<String>().matches('|').count());
        if let (Some(cells), Some(header)) = (cells, columns) {
            assert_eq!(cells, header, "{line}");
        }
        columns = cells;
    }
    assert!(!is_code);
    let count = |text: &str| markdown.lines().filter(|line| line.starts_with(text)).count();
    assert_eq!(count("<details><summary>"), count("</details>"));
}

#[test]
fn pages_of_all_sheets_are_sound_and_name_every_instruction() {
    let mut sources = published();
    let files = report(&sources, &Catalog::embedded()).unwrap();
    assert_eq!(files.len(), 2 * (sources.len() + 1));
    sources.push(measured());
    let single = report(&[sources.pop().unwrap()], &Catalog::embedded()).unwrap();
    assert_eq!(single.len(), 2, "one sheet needs no overview");
    let of = |name: &str| &files.iter().find(|(path, _)| path == name).unwrap().1;
    for (path, text) in files.iter().chain(&single) {
        match path.ends_with(".html") {
            true => is_sound(text),
            false => is_sound_markdown(text),
        }
    }
    for Source { name, sheet, .. } in &sources {
        let (html, markdown) = (of(&format!("{name}.html")), of(&format!("{name}.md")));
        for entry in &sheet.instructions {
            assert!(html.contains(&format!("<code>{}</code>", entry.name)), "{}", entry.name);
            assert!(markdown.contains(&format!("`{}`", entry.name)), "{}", entry.name);
        }
        assert!(of("index.html").contains(&format!("href=\"{name}.html\"")));
        assert!(of("index.md").contains(&format!("({name}.md)")));
    }
}

#[test]
fn instructions_of_which_the_same_is_known_share_a_group() {
    for (sheet, instructions, most) in [
        ("reports/rtx_blackwell.yaml", 94, 12),
        ("reports/blackwell.yaml", 91, 13),
        ("reports/volta.yaml", 3, 3),
    ] {
        let source = source(sheet);
        let page = Page::new(&source).unwrap();
        assert!(page.groups.len() <= most, "{sheet}: {}", page.groups.len());
        let members: Vec<&str> =
            page.groups.iter().flat_map(|group| &group.members).map(|member| member.name.as_str()).collect();
        assert_eq!(members.iter().collect::<BTreeSet<_>>().len(), instructions);
        assert_eq!(members.len(), instructions);
        // What differs in a group is the formats of A and B, and nothing else.
        for group in &page.groups {
            let entry =
                |name: &str| source.sheet.instructions.iter().find(|entry| entry.name == name).unwrap();
            let first = Model::try_from(entry(&group.members[0].name).arithmetic.as_ref().unwrap()).unwrap();
            for member in &group.members[1..] {
                let mut model = Model::try_from(entry(&member.name).arithmetic.as_ref().unwrap()).unwrap();
                (model.a.format, model.b.format) = (first.a.format, first.b.format);
                assert_eq!(model, first, "{}", member.name);
            }
        }
    }
}

/// A text that is markup in HTML, SVG, Markdown and templates, and hides something.
const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)></details>|`|``|[x](javascript:a)\
                       {{ 7 * 7 }}{% raw %}$x$\u{202e}\n# heading\n***b***&lt;http://evil.example/";

#[test]
fn hostile_texts_stay_texts() {
    let mut source = source("reports/volta.yaml");
    let text = || HOSTILE.to_string();
    source.name = "<b>&\"'#?".to_string();
    let sheet = &mut source.sheet;
    (sheet.tool, sheet.date) = (text(), Some(text()));
    (sheet.device.name, sheet.device.description) = (text(), text());
    sheet.device.properties.0.push((text(), text()));
    for entry in &mut sheet.instructions {
        entry.name += HOSTILE;
        entry.algorithm = text();
        entry.summary = text();
        entry.notes.push(text());
        for dispute in &mut entry.disputed {
            (dispute.name, dispute.statement, dispute.source) = (text(), text(), text());
            (dispute.alternative, dispute.alternative_source) = (text(), text());
        }
        let ambiguity = Ambiguity { statement: text(), alternatives: vec![text(), text()], tried: text() };
        entry.ambiguous.push(ambiguity.clone());
        entry.equivalent.push(ambiguity);
        entry.evidence.push(Statement {
            statement: text(),
            probes: vec![text()],
            answers: 7,
            rejected: vec![text()],
            source: Some(text()),
        });
        entry.counterexample = Some(Counterexample {
            a: vec![text(), "0x3c00".to_string()],
            b: vec!["0xffffffffffffffff".to_string()],
            c: text(),
            sa: Vec::new(),
            sb: Vec::new(),
            device: text(),
            model: Some(text()),
            note: text(),
        });
    }
    let sources = [source, self::source("reports/turing.yaml")];
    for (path, text) in report(&sources, &Catalog::embedded()).unwrap() {
        assert!(!text.contains('\u{202e}') && !text.contains("\n# heading"), "{path}");
        // No template reads what a template has put in.
        assert!(path.starts_with("turing") || text.contains("7 * 7") || text.contains("7 \\* 7"), "{path}");
        match path.ends_with(".html") {
            true => {
                is_sound(&text);
                assert!(path.starts_with("turing") || text.contains("&#60;script&#62;"), "{path}");
            }
            false => is_sound_markdown(&text),
        }
    }
}

#[test]
fn what_is_not_explained_is_told_without_a_tree() {
    let mut source = source("reports/volta.yaml");
    let [refuted, unexplained, _] = &mut source.sheet.instructions[..] else { panic!() };
    let example = Counterexample {
        a: vec!["0x3c00".to_string(); 4],
        b: vec!["0x0001".to_string(); 4],
        c: "0x00000001".to_string(),
        sa: Vec::new(),
        sb: Vec::new(),
        device: "0x3f800001".to_string(),
        model: Some("0x3f800000".to_string()),
        note: "off by one".to_string(),
    };
    (refuted.status, refuted.counterexample) = (Status::Refuted, Some(example));
    (unexplained.status, unexplained.arithmetic) = (Status::Unexplained, None);
    let files = report(&[source], &Catalog::embedded()).unwrap();
    for (_, text) in &files {
        for says in
            ["contradicts this arithmetic", "0x3f800001 = 0x1.000002p+0", "it is unexplained", "refuted"]
        {
            assert!(text.contains(says), "{says}");
        }
    }
}

/// The picture of a rule of a published instruction, in characters.
fn picture(sheet: &str, instruction: &str, rule: usize) -> Vec<String> {
    let source = source(sheet);
    let entry = source.sheet.instructions.iter().find(|entry| entry.name == instruction).unwrap();
    let model = Model::try_from(entry.arithmetic.as_ref().unwrap()).unwrap();
    significands::pictures(&model)[rule].text()
}

/// Drawn by hand from section IV of the MMA-Sim paper: F, the widths of significands, the roundings.
#[test]
fn pictures_show_what_is_kept_and_lost() {
    // 2 + 3 + 3 bits of a product of e4m3, F = 13; c has 24 bits.
    let hopper = picture("reports/hopper.yaml", "wgmma.m64n8k32.f32.e4m3.e4m3", 0);
    for line in [
        "c at e_max: loses 10 of 24 bits, RZ",
        "product, 10 below e_max: loses 3 of 8 bits, RZ",
        "sum: 13 fraction bits",
        "→ fp32 RZ, leading one at e_max: 1 + 13 bits",
    ] {
        assert!(hopper.iter().any(|own| own == line), "{line}: {hopper:#?}");
    }
    // 33 summands below 4: seven columns left of e_max's, then it, then 13.
    let sum = hopper.iter().position(|line| line == "sum: 13 fraction bits").unwrap();
    assert_eq!(hopper[sum + 1], "█".repeat(7 + 1 + 13));
    assert_eq!(hopper[sum + 3], format!("{}{}", " ".repeat(7), "█".repeat(14)));
    // c is rounded down near by, and toward zero when it is more than 25 below.
    let fp8 = picture("reports/cdna3.yaml", "v_mfma_f32_16x16x32_fp8_fp8", 2);
    assert!(fp8.contains(&"c, 13 below e_max: loses 12 of 24 bits, RD".to_string()), "{fp8:#?}");
    assert!(fp8.contains(&"c, 26 below e_max: loses 24 of 24 bits, RZ".to_string()), "{fp8:#?}");
}

#[test]
fn drawings_fit_a_phone_whatever_k_is() {
    for (name, model) in shapes::all() {
        let svg = tree::svg(&model);
        let number = |text: &str, before: &str| -> f64 {
            let (_, rest) = text.split_once(before).unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        assert_eq!(number(&svg, "width=\""), 336.0);
        let height = number(&svg, " height=\"");
        // These two repeat nothing, on purpose.
        assert!(height < 900.0 || ["irregular", "many rules"].contains(&name), "{name}: {height}");
        for line in svg.lines().filter(|line| line.starts_with("<text")) {
            let content = line.split_once('>').unwrap().1.trim_end_matches("</text>");
            let end = number(line, "x=\"") + 7.3 * content.chars().count() as f64;
            assert!(end <= 336.0, "{name}: {line}");
        }
        for picture in significands::pictures(&model) {
            assert!(picture.text().iter().all(|line| line.chars().count() <= 110), "{name}");
            let svg = picture.svg("i1", &1);
            for part in svg.split("<rect").skip(1).filter(|part| part.contains("x=\"")) {
                let (x, width) = (
                    number(&part.replace("%\"", "\""), " x=\""),
                    number(&part.replace("%\"", "\""), "width=\""),
                );
                assert!(x >= -0.01 && width > 0.0 && x + width <= 100.02, "{name}: {part}");
            }
        }
    }
}

#[test]
fn parameters_tell_models_apart() {
    let all = shapes::all();
    for (name, model) in &all {
        assert_eq!(parameters::differences(model, model), [], "{name}");
    }
    let of = |sheet: &str, name: &str| {
        let source = source(sheet);
        let entry = source.sheet.instructions.iter().find(|entry| entry.name == name).unwrap();
        Model::try_from(entry.arithmetic.as_ref().unwrap()).unwrap()
    };
    let name = "mma.m16n8k16.f32.f16.f16.f32";
    let differences =
        parameters::differences(&of("reports/ampere.yaml", name), &of("reports/hopper.yaml", name));
    let texts: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["summation: chain of 2 × (8 products), from c → c + 16 products", "alignment: F=24, RZ → F=25, RZ"]
    );
}

#[test]
fn generations_stand_side_by_side_in_their_order() {
    // As a shell lists them.
    let mut sources = published();
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    sources.push(measured());
    let overview = Overview::new(&sources, &Catalog::embedded());
    let names: Vec<Vec<&str>> = overview
        .lines
        .iter()
        .map(|line| line.sheets.iter().map(|sheet| sheet.name.as_str()).collect())
        .collect();
    assert_eq!(names[0], ["volta", "turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell"]);
    assert_eq!(names[1], ["cdna1", "cdna2", "cdna3"]);
    assert_eq!(names.last().unwrap(), &["intel-xeon-6-207"]);
    assert_eq!(overview.lines.last().unwrap().vendor, None);
    let changes = &overview.lines[0].changes;
    assert_eq!(changes.len(), 6);
    // The paper, section VI.A: FP8 accumulates with 13 bits on Ada Lovelace and Hopper, with 25 on Blackwell.
    let to_blackwell = changes.iter().find(|change| change.to.contains("NVIDIA Blackwell")).unwrap();
    let fp8 =
        to_blackwell.changed.iter().find(|(formats, _)| formats.iter().any(|own| own == "e4m3·e4m3 + fp32"));
    assert!(fp8.unwrap().1.contains(&"alignment: F=13, RZ → F=25, RZ".to_string()), "{fp8:?}");
}

#[test]
fn recorded_answers_stand_behind_statements() {
    let source = measured();
    let page = Page::new(&source).unwrap();
    let mut witnesses = 0;
    for member in page.groups.iter().flat_map(|group| &group.members) {
        for own in &member.evidence {
            for witness in &own.witnesses {
                assert_ne!(witness.answer, witness.otherwise, "{}: {}", member.name, own.statement);
                assert!(!witness.inputs.is_empty());
                witnesses += 1;
            }
        }
        let is_rounding =
            |own: &&mmaprobe::report::evidence::Supported| own.statement.starts_with("final rounding");
        assert!(
            member.evidence.iter().filter(is_rounding).all(|own| !own.witnesses.is_empty()),
            "{}",
            member.name
        );
    }
    assert!(witnesses > 200, "{witnesses}");
}

/// What the pages say of special values, against the processor that runs this.
#[test]
fn special_values_come_out_as_an_fma_has_them() {
    let model = Model::chain_of_fma(FP32, FP32, 1);
    let instruction = Instruction {
        name: "fma".into(),
        m: 1,
        n: 1,
        k: 1,
        a: FP32,
        b: FP32,
        c: FP32,
        d: FP32,
        scale: None,
        mode_of: None,
    };
    let cases = cases(&instruction, &model);
    assert!(cases.len() >= 12);
    for case in cases {
        let operand = |name: &str| {
            let line = case.inputs.iter().find(|line| line.starts_with(name));
            let bits = line.and_then(|line| line.split(' ').nth(1)).unwrap_or("0x0");
            f32::from_bits(u32::from_str_radix(bits.trim_start_matches("0x"), 16).unwrap())
        };
        let expected = operand("a[0]").mul_add(operand("b[0]"), operand("c "));
        let expected = match expected.is_nan() {
            true => "a NaN; which one is not known".to_string(),
            false => hex(&FP32, expected.to_bits().into()),
        };
        assert!(case.answer.starts_with(&expected), "{case:?}: {expected}");
    }
    let fp8 = Format::named("e4m3").unwrap();
    let without = Instruction { a: fp8, b: fp8, ..instruction };
    let model = Model::chain_of_fma(fp8, FP32, 1);
    assert!(mmaprobe::report::special::cases(&without, &model).iter().all(|case| !case.what.contains('∞')));
}

// The command.

fn mmaprobe(arguments: &[&str]) -> (Option<i32>, String) {
    let run =
        Command::new(env!("CARGO_BIN_EXE_mmaprobe")).args(arguments).current_dir(root()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "");
    (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
}

fn read(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_string(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn the_command_writes_pages_and_replaces_them_if_asked() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("below/pages");
    let path = folder.to_str().unwrap();
    let both = ["report", "reports/volta.yaml", "reports/turing.yaml", "-o", path];
    let (code, said) = mmaprobe(&both);
    assert_eq!(code, Some(0), "{said}");
    let files = read(&folder);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["index.html", "index.md", "turing.html", "turing.md", "volta.html", "volta.md"]);

    fs::write(folder.join("volta.md"), "precious").unwrap();
    fs::write(folder.join("other.txt"), "other").unwrap();
    fs::remove_file(folder.join("index.md")).unwrap();
    let (code, said) = mmaprobe(&both);
    assert!(code == Some(2) && said.contains("--force"), "{said}");
    assert!(!folder.join("index.md").exists(), "nothing is written if something is in the way");
    assert_eq!(fs::read_to_string(folder.join("volta.md")).unwrap(), "precious");
    // The same bytes with any number of threads.
    let (code, _) = mmaprobe(&[&both[..], &["--force", "--threads", "1"]].concat());
    assert_eq!(code, Some(0));
    let again: Vec<_> = read(&folder).into_iter().filter(|(name, _)| name != "other.txt").collect();
    assert_eq!(again, files);
}

#[test]
fn sheets_that_make_no_report_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let output = place.path().join("pages");
    let index = place.path().join("index.yaml");
    fs::write(&index, write(&source("reports/volta.yaml").sheet)).unwrap();
    let recording = format!("{CPU}.rec");
    for (sheets, problem) in [
        (&["reports/volta.yaml", "reports/volta.yaml"][..], "two pages would be called 'volta'"),
        (&["reports/volta.yaml", index.to_str().unwrap()], "two pages would be called 'index'"),
        (&["reports/volta.yaml", "--evidence", &recording], "none of the sheets is of that device"),
        (&["reports/nothing.yaml"], "nothing.yaml"),
    ] {
        let (code, said) = mmaprobe(&[&["report", "-o", output.to_str().unwrap()], sheets].concat());
        assert!(code == Some(2) && said.contains(problem), "{problem}: {said}");
        assert!(!output.exists());
    }
    let (code, said) = mmaprobe(&["report", "reports/volta.yaml", "-o", "/dev/null/pages"]);
    assert!(code == Some(2) && said.contains("/dev/null/pages"), "{said}");
}
