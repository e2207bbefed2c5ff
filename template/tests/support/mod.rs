//! Reading recorded dot-adds, and holding an instruction against them.
//!
//! A line is one dot-add: k elements of a row of A, k of a column of B, the element of C, where there are
//! block scales those of the row and of the column, and after `=` what was answered, all as bit patterns
//! in hexadecimal. Lines that begin with `#` are for people. The last one says how many dot-adds there are.

use generated_model::format::Decoded;
use generated_model::instruction::Instruction;
use generated_model::tree::NanRule;

/// Holds an instruction against every dot-add of a file.
pub fn check(name: &str, file: &str) {
    let instruction = Instruction::named(name).expect("the instruction is in this crate");
    let prepared = instruction.prepare();
    let is_nan = |bits| matches!(instruction.d().decode(bits), Decoded::Nan { .. });
    // Where the sheet does not know which NaN a NaN is, any stands for any other.
    let any_nan = prepared.model().nan == NanRule::Unknown;
    let mut count = 0;
    let mut wrong = Vec::new();
    for (number, line) in file.lines().enumerate() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (question, answer) = line.split_once(" = ").expect("an answer behind `=`");
        let operands: Vec<Vec<u64>> =
            question.split(" | ").map(|text| text.split(' ').map(bits).collect()).collect();
        let answer = bits(answer);
        let computed = match &operands[..] {
            [a, b, c] => prepared.dot_add(a, b, c[0]),
            [a, b, c, sa, sb] => prepared.dot_add_scaled(a, b, c[0], sa, sb),
            _ => panic!("line {}: three operands, or five", number + 1),
        };
        let computed = computed.expect("operands of the instruction's lengths");
        if computed != answer && !(any_nan && is_nan(computed) && is_nan(answer)) {
            wrong.push(format!("line {}: {line}, not {computed:x}", number + 1));
        }
        count += 1;
    }
    let promised = file.lines().next_back().and_then(|line| line.strip_prefix("# dot-adds: "));
    assert_eq!(promised, Some(count.to_string().as_str()), "{name}: the file is not whole");
    assert!(wrong.is_empty(), "{name}: {} of {count} answers differ\n{}", wrong.len(), wrong.join("\n"));
}

fn bits(text: &str) -> u64 {
    u64::from_str_radix(text, 16).expect("a bit pattern in hexadecimal")
}
