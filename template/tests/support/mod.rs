//! Reading recorded dot-adds, and holding an instruction against them.
//!
//! A line is one dot-add: k elements of a row of A, k of a column of B, the element of C, where there are
//! block scales those of the row and of the column, and after `=` what was answered, all as bit patterns
//! in hexadecimal. Lines that begin with `#` are for people. The last one says how many dot-adds there are.

use generated_model::batch::Batch;
use generated_model::format::Decoded;
use generated_model::instruction::{Instruction, Prepared};
use generated_model::tree::NanRule;

/// Holds an instruction against every dot-add of a file, twice: element by element, and as elements of
/// whole matrices, which are computed in another way.
pub fn check(name: &str, file: &str) {
    let instruction = Instruction::named(name).expect("the instruction is in this crate");
    let prepared = instruction.prepare();
    let dot_adds: Vec<DotAdd> = file.lines().enumerate().filter_map(DotAdd::read).collect();
    let promised = file.lines().next_back().and_then(|line| line.strip_prefix("# dot-adds: "));
    assert_eq!(promised, Some(dot_adds.len().to_string().as_str()), "{name}: the file is not whole");
    let is_nan = |bits| matches!(instruction.d().decode(bits), Decoded::Nan { .. });
    // Where the sheet does not know which NaN a NaN is, any stands for any other.
    let any_nan = prepared.model().nan == NanRule::Unknown;
    let elements = dot_adds.iter().map(|own| own.alone(&prepared));
    let mut wrong = Vec::new();
    for (way, computed) in [("alone", elements.collect()), ("in a matrix", in_matrices(&prepared, &dot_adds))]
    {
        assert_eq!(computed.len(), dot_adds.len());
        for (own, computed) in dot_adds.iter().zip(computed) {
            if computed != own.answer && !(any_nan && is_nan(computed) && is_nan(own.answer)) {
                wrong.push(format!("line {}, {way}: {computed:x}, not {:x}", own.line, own.answer));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{name}: {} answers of {} differ\n{}",
        wrong.len(),
        2 * dot_adds.len(),
        wrong.join("\n")
    );
}

/// A line of a file.
struct DotAdd {
    line: usize,
    /// Elements of A, of B, of C, scales of A, of B.
    operands: [Vec<u64>; 5],
    answer: u64,
}

impl DotAdd {
    fn read((index, line): (usize, &str)) -> Option<DotAdd> {
        if line.starts_with('#') || line.is_empty() {
            return None;
        }
        let (question, answer) = line.split_once(" = ").expect("an answer behind `=`");
        let mut operands: Vec<Vec<u64>> =
            question.split(" | ").map(|text| text.split(' ').map(bits).collect()).collect();
        operands.resize(5, Vec::new());
        let operands = operands.try_into().expect("three operands, or five");
        Some(DotAdd { line: index + 1, operands, answer: bits(answer) })
    }

    fn alone(&self, prepared: &Prepared) -> u64 {
        let [a, b, c, sa, sb] = &self.operands;
        let computed = match sa.is_empty() {
            true => prepared.dot_add(a, b, c[0]),
            false => prepared.dot_add_scaled(a, b, c[0], sa, sb),
        };
        computed.expect("operands of the instruction's lengths")
    }
}

/// The answers to dot-adds that lie on the diagonals of as many matrices as it takes.
fn in_matrices(prepared: &Prepared, dot_adds: &[DotAdd]) -> Vec<u64> {
    let i = prepared.instruction();
    let diagonal = i.m().min(i.n());
    let count = dot_adds.len().div_ceil(diagonal);
    let scale_bytes = i.scale().map_or(0, |scale| scale.format.bytes);
    let [a_bytes, b_bytes, c_bytes, d_bytes] = [i.a(), i.b(), i.c(), i.d()].map(|format| format.bytes);
    let mut arrays = i.bytes().map(|each| vec![0; count * each]);
    for (index, own) in dot_adds.iter().enumerate() {
        let (problem, at) = (index / diagonal, index % diagonal);
        // Of each array the element that the dot-add's first one becomes, and the width of all.
        let places = [
            ((problem * i.m() + at) * i.k(), a_bytes),
            ((problem * i.n() + at) * i.k(), b_bytes),
            ((problem * i.m() + at) * i.n() + at, c_bytes),
            ((problem * i.m() + at) * i.scales(), scale_bytes),
            ((problem * i.n() + at) * i.scales(), scale_bytes),
        ];
        for ((array, elements), (first, bytes)) in arrays.iter_mut().zip(&own.operands).zip(places) {
            for (offset, element) in elements.iter().enumerate() {
                let place = (first + offset) * bytes;
                array[place..place + bytes].copy_from_slice(&element.to_le_bytes()[..bytes]);
            }
        }
    }
    let [a, b, c, sa, sb, mut d] = arrays;
    let batch = Batch { count, a: &a, b: &b, c: &c, sa: &sa, sb: &sb };
    prepared.execute_bytes(&batch, &mut d).expect("arrays of the instruction's lengths");
    let element = |index: usize| {
        let (problem, at) = (index / diagonal, index % diagonal);
        let first = ((problem * i.m() + at) * i.n() + at) * d_bytes;
        let mut bits = [0; 8];
        bits[..d_bytes].copy_from_slice(&d[first..first + d_bytes]);
        u64::from_le_bytes(bits)
    };
    (0..dot_adds.len()).map(element).collect()
}

fn bits(text: &str) -> u64 {
    u64::from_str_radix(text, 16).expect("a bit pattern in hexadecimal")
}
