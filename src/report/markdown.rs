//! Pages in Markdown, for code hosts: tables, trees and pictures in characters, `<details>` for what is
//! long.

use crate::markdown::{Lines, cell, code, escaped};
use crate::report::address;
use crate::report::evidence::Supported;
use crate::report::overview::{Lineage, Overview};
use crate::report::page::{Details, Group, Member, Open, Page};

/// The page of a sheet; `overview` is the address of the page about all sheets, if there is one.
pub fn page(page: &Page, overview: Option<&str>) -> String {
    let mut lines = Lines::default();
    lines.heading(1, &escaped(&page.title));
    if let Some(overview) = overview {
        lines.paragraph(&format!("[All sheets]({overview})"));
    }
    lines.gap();
    for (what, value) in &page.facts {
        lines.item(&format!("{}: {}", escaped(what), escaped(value)));
    }
    let absent = page.absent.iter().map(|(name, reason)| format!("{name}: {reason}"));
    lines.section(2, "Absent", absent);
    lines.heading(2, "Instructions");
    lines.paragraph(
        "Instructions of which the same is known, but for the formats of A and B, are told of together. F is the number \
         of fraction bits that are kept when summands are aligned to the largest exponent.",
    );
    let header = ["instructions", "algorithm", "F", "rounding", "subnormals", "NaN", "status"];
    lines.table(&header, &page.groups.iter().map(row).collect::<Vec<_>>());
    for own in &page.groups {
        group(&mut lines, own);
    }
    lines.finish().join("\n") + "\n"
}

fn row(group: &Group) -> Vec<String> {
    let shown: Vec<String> = group.shown().iter().map(|member| code(&member.name)).collect();
    let more = match group.folded().len() {
        0 => String::new(),
        more => format!("<br>and {more} more"),
    };
    let mut cells =
        vec![format!("[{}](#{}){more}", shown.join("<br>"), group.anchor), cell(&group.algorithm)];
    match &group.arithmetic {
        Some(Details { columns, .. }) => {
            let texts = [&columns.fraction_bits, &columns.rounding, &columns.subnormals, &columns.nan];
            cells.extend(texts.map(|text| cell(text)));
        }
        None => cells.extend(["–"; 4].map(str::to_string)),
    }
    cells.push(group.status.to_string());
    cells
}

fn group(lines: &mut Lines, group: &Group) {
    lines.gap();
    lines.line(format!("<a id=\"{}\"></a>", group.anchor));
    let (first, more) = group.title();
    lines.heading(2, &format!("{}{more}", code(first)));
    let algorithm = match group.algorithm.as_str() {
        "unnamed" => "no published algorithm".to_string(),
        name => escaped(name),
    };
    lines.paragraph(&format!("**{}**, {algorithm}. {}", group.status, escaped(&group.summary)));
    if let Some(warning) = group.warning() {
        lines.paragraph(&format!("**{warning}**"));
    }
    match &group.arithmetic {
        Some(details) => arithmetic(lines, details),
        None => lines.paragraph(&group.without_arithmetic()),
    }
    let open = |open: &Open| {
        format!("{}: it could be {} ({})", open.statement, open.alternatives.join(" or "), open.tried)
    };
    for (title, list) in group.open() {
        lines.section(3, title, list.iter().map(open));
    }
    let disputed = group.disputed.iter().map(|[name, statement, source, alternative, other]| {
        format!("{name}: {statement} ({source}); otherwise: {alternative} ({other})")
    });
    lines.section(3, "Disputed", disputed);
    let modes = group.modes.iter().map(|(mode, effect, evidence)| format!("{mode}: {effect} ({evidence})"));
    lines.section(3, "Modes of the machine", modes);
    lines.section(3, "Notes", group.notes.iter().cloned());
    if !group.was_asked() {
        let rows = group.members.iter().map(|own| {
            vec![code(&own.name), cell(&own.formats), cell(&own.shape), several_lines(&own.sayings())]
        });
        lines.heading(3, "Not asked here");
        return lines.table(&["instruction", "formats", "m×n×k", "said"], &rows.collect::<Vec<_>>());
    }
    let several = group.members.len() > 1;
    for own in &group.members {
        if several {
            open_details(lines, &format!("{}, {}, {}", own.name, own.formats, own.shape));
        } else {
            let mode = own.mode.as_ref().map_or(String::new(), |mode| format!("; {mode}"));
            lines.paragraph(&escaped(&format!("{}, {}{mode}", own.shape, own.formats)));
        }
        member(lines, own);
        if several {
            close_details(lines);
        }
    }
}

fn arithmetic(lines: &mut Lines, details: &Details) {
    lines.heading(3, "What is added when");
    lines.verbatim(&details.tree);
    lines.heading(3, "What each step keeps and loses");
    let widths = match &details.drawn_for {
        Some(name) => format!("; widths are those of {}", code(name)),
        None => String::new(),
    };
    lines.paragraph(&format!("Where a summand stands is an example{widths}."));
    for picture in &details.pictures {
        lines.paragraph(&code(&picture.title));
        lines.verbatim(&picture.text());
    }
    lines.section(3, "Special values", details.special.iter().cloned());
    open_details(lines, &format!("What comes out of them ({} inputs)", details.cases.len()));
    let computed = "Computed by the arithmetic above; operands that are not listed are +0";
    lines.paragraph(&match &details.drawn_for {
        Some(name) => format!("{computed}. For {}.", code(name)),
        None => format!("{computed}."),
    });
    let rows = details
        .cases
        .iter()
        .map(|case| vec![cell(case.what), several_lines(&case.inputs), cell(&case.answer)]);
    lines.table(&["input", "operands", "d"], &rows.collect::<Vec<_>>());
    close_details(lines);
    open_details(lines, &format!("Every parameter ({})", details.parameters.len()));
    let rows = details.parameters.iter().map(|parameter| vec![cell(&parameter.what), cell(&parameter.value)]);
    lines.table(&["parameter", "value"], &rows.collect::<Vec<_>>());
    close_details(lines);
}

fn member(lines: &mut Lines, member: &Member) {
    lines.section(3, "Counterexample", member.counterexample.iter().cloned());
    lines.gap();
    for note in &member.notes {
        lines.item(&escaped(note));
    }
    let cost = member.cost.iter().map(|cost| format!("Asked before that: {cost}."));
    if !member.validation.is_empty() {
        lines.section(3, "Validation", member.validation.iter().cloned().chain(cost));
    }
    if !member.evidence.is_empty() {
        lines.heading(3, "Evidence");
        for own in &member.evidence {
            statement(lines, own);
        }
    }
    if !member.asked.is_empty() {
        open_details(lines, &format!("What the probes asked ({})", member.asked.len()));
        lines.paragraph("One dot-add of each; d is what the arithmetic gives.");
        let rows = member.asked.iter().map(|asked| {
            let question = format!("{} ({})", asked.question, asked.origin());
            vec![code(&asked.name), cell(&question), several_lines(&asked.inputs), cell(&asked.answer)]
        });
        lines.table(&["probe", "question", "operands", "d"], &rows.collect::<Vec<_>>());
        close_details(lines);
    }
}

fn statement(lines: &mut Lines, own: &Supported) {
    let source = own.source.as_ref().map_or(String::new(), |source| format!(" ({source})"));
    if own.answers == 0 && own.rejected.is_empty() {
        return lines.paragraph(&escaped(&format!("{}{source}", own.statement)));
    }
    open_details(lines, &format!("{}{source}: {}", own.statement, own.support()));
    lines.gap();
    lines.item(&format!("asked by {}", escaped(&own.probes.join(", "))));
    if !own.rejected.is_empty() {
        lines.item(&format!("contradicted: {}", escaped(&own.rejected.join(" · "))));
    }
    let rows = own.witnesses.iter().map(|witness| {
        vec![
            cell(&witness.alternative),
            cell(&witness.probe),
            several_lines(&witness.inputs),
            cell(&witness.answer),
            cell(&witness.otherwise),
        ]
    });
    let header = ["alternative", "probe", "operands", "recorded answer", "it would have been"];
    lines.table(&header, &rows.collect::<Vec<_>>());
    close_details(lines);
}

/// Texts one below the other in a cell.
fn several_lines(texts: &[String]) -> String {
    texts.iter().map(|text| cell(text)).collect::<Vec<_>>().join("<br>")
}

fn open_details(lines: &mut Lines, summary: &str) {
    lines.gap();
    // Markdown is not read in here.
    lines.line(format!("<details><summary>{}</summary>", crate::svg::escaped(summary)));
}

fn close_details(lines: &mut Lines) {
    lines.gap();
    lines.line("</details>");
}

/// The page about several sheets.
pub fn overview(overview: &Overview) -> String {
    let mut lines = Lines::default();
    lines.heading(1, "What matrix units compute");
    lines.paragraph(
        "For each vendor: the algorithm for each combination of formats, and the K of the instructions that follow it; \
         then what changed from one generation to the next. Combinations of which all sheets say the same share a row; \
         “–”: no such instruction.",
    );
    for line in &overview.lines {
        lineage(&mut lines, line);
    }
    lines.finish().join("\n") + "\n"
}

fn lineage(lines: &mut Lines, line: &Lineage) {
    lines.heading(2, &escaped(line.title()));
    lines.gap();
    for sheet in &line.sheets {
        let (title, address) = (escaped(&sheet.title), address(&sheet.name));
        lines.item(&format!("[{title}]({address}.md): {} instructions", sheet.instructions));
    }
    let names: Vec<String> = line
        .sheets
        .iter()
        .map(|sheet| format!("[{}]({}.md)", cell(&sheet.name), address(&sheet.name)))
        .collect();
    let header: Vec<&str> = std::iter::once("formats").chain(names.iter().map(String::as_str)).collect();
    let rows = line.rows.iter().map(|row| {
        let cells =
            row.cells.iter().map(|cell| if cell.is_empty() { "–".to_string() } else { several_lines(cell) });
        let formats = match &row.formats[..] {
            [first, .., last] if row.formats.len() > 4 => {
                vec![first.clone(), format!("… {} more …", row.formats.len() - 2), last.clone()]
            }
            few => few.to_vec(),
        };
        std::iter::once(several_lines(&formats)).chain(cells).collect()
    });
    lines.table(&header, &rows.collect::<Vec<_>>());
    for change in &line.changes {
        lines.heading(3, &format!("{} → {}", escaped(&change.from), escaped(&change.to)));
        for (formats, texts) in &change.changed {
            lines.section(4, &escaped(&formats.join("; ")), texts.iter().cloned());
        }
        for (what, list) in change.others() {
            if !list.is_empty() {
                lines.paragraph(&format!("{what}: {}.", escaped(&list.join("; "))));
            }
        }
    }
}
