//! A first look at whether a device takes operands where the file says: sums of ones, and a single
//! product in a corner of the matrix.
//!
//! What is odd is told and claims nothing: what an instruction computes is for inference to find out.

use crate::bits::Shown;
use crate::device::{Batch, Device, DeviceError, Instruction, element, run_checked, set_element};
use crate::model::Format;
use crate::probes::place::{Dyadic, exactly};

/// What was odd about an instruction; nothing if all was as expected.
///
/// # Errors
/// If the device fails.
pub fn oddities(device: &dyn Device, instruction: &Instruction) -> Result<Vec<String>, DeviceError> {
    let Instruction { m, n, k, a, b, c, d, scale, .. } = instruction;
    let one = |format: &Format| exactly(format, Dyadic::power(0));
    let (Some(one_a), Some(one_b), Some(one_d)) = (one(a), one(b), one(d)) else {
        return Ok(vec!["its formats have no 1 to try it with".to_string()]);
    };
    let mut empty = Batch::zeros(instruction, 1);
    if let Some(scale) = scale {
        let Some(one) = one(&scale.format) else {
            return Ok(vec!["its scales have no 1 to try it with".to_string()]);
        };
        for scales in [&mut empty.sa, &mut empty.sb] {
            (0..scales.len() / scale.format.bytes)
                .for_each(|index| set_element(scales, &scale.format, index, one));
        }
    }
    let mut odd = Vec::new();
    let mut asked = empty.clone();
    (0..m * k).for_each(|index| set_element(&mut asked.a, a, index, one_a));
    (0..n * k).for_each(|index| set_element(&mut asked.b, b, index, one_b));
    let answer = run_checked(device, instruction, &asked)?;
    if answer != run_checked(device, instruction, &asked)? {
        odd.push("the same matrices twice gave two answers".to_string());
    }
    let shown = |bits| Shown { format: d, bits }.to_string();
    if let Some(sum) = exactly(d, Dyadic::new(*k as u64, 0)) {
        let wrong = (0..m * n).map(|index| element(&answer, d, index)).find(|bits| *bits != sum);
        odd.extend(wrong.map(|bits| format!("ones in A and B, zeros in C: D has {}, not {k}", shown(bits))));
    }
    // A[i][0]·B[0][j] alone, then C[i][j] alone, in the corners that a transposed matrix would confuse.
    let one_c = one(c);
    let mut corners = vec![(0, n - 1), (m - 1, 0)];
    corners.dedup();
    for (i, j) in corners {
        let mut product = empty.clone();
        set_element(&mut product.a, a, i * k, one_a);
        set_element(&mut product.b, b, j * k, one_b);
        let mut problems = vec![(format!("A[{i}][0] = B[0][{j}] = 1"), product)];
        if let Some(one_c) = one_c {
            let mut sum = empty.clone();
            set_element(&mut sum.c, c, i * n + j, one_c);
            problems.push((format!("C[{i}][{j}] = 1"), sum));
        }
        for (what, problem) in problems {
            let answer = run_checked(device, instruction, &problem)?;
            for index in 0..m * n {
                let (bits, expected) =
                    (element(&answer, d, index), if index == i * n + j { one_d } else { 0 });
                if bits != expected {
                    let (row, column) = (index / n, index % n);
                    odd.push(format!("{what}, else zeros: D[{row}][{column}] is {}", shown(bits)));
                    break;
                }
            }
        }
    }
    Ok(odd)
}
