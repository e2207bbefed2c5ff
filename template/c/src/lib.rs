//! The C interface, as `include/generated_model.h` describes it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use generated_model::batch::Batch;
use generated_model::instruction::{Instruction, Prepared};

/// What a function returns that did what it was asked.
const OK: c_int = 0;
/// What a function returns that was asked about an instruction that does not exist.
const NO_SUCH_INSTRUCTION: c_int = 1;
/// What a function returns that was given a null pointer in the place of an array.
const NULL_POINTER: c_int = 2;
/// What a function returns that was asked for more problems than can be addressed.
const TOO_MANY_PROBLEMS: c_int = 3;

/// Shape and formats of an instruction.
#[repr(C)]
pub struct Description {
    name: *const c_char,
    sheet: *const c_char,
    a: *const c_char,
    b: *const c_char,
    c: *const c_char,
    d: *const c_char,
    scale: *const c_char,
    m: usize,
    n: usize,
    k: usize,
    block: usize,
    a_bytes: usize,
    b_bytes: usize,
    c_bytes: usize,
    scale_bytes: usize,
    d_bytes: usize,
}

/// An instruction, ready to be executed, and its texts as C has them.
struct Entry {
    prepared: Prepared,
    qualified: CString,
    name: CString,
    sheet: CString,
    formats: [CString; 5],
}

fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
    let entry = |own: Instruction| Entry {
        prepared: own.prepare(),
        qualified: text(&format!("{}/{}", own.sheet(), own.name())),
        name: text(own.name()),
        sheet: text(own.sheet()),
        formats: [Some(own.a()), Some(own.b()), Some(own.c()), Some(own.d()), own.scale().map(|s| &s.format)]
            .map(|format| text(format.map_or("", |format| format.name))),
    };
    ENTRIES.get_or_init(|| Instruction::all().map(entry).collect())
}

/// Number of instructions.
#[unsafe(no_mangle)]
pub extern "C" fn generated_model_count() -> usize {
    entries().len()
}

/// Index of the instruction of a name, `NAME` or `SHEET/NAME`; the count if there is none, or several.
///
/// # Safety
/// `name` is null, or points to a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn generated_model_find(name: *const c_char) -> usize {
    if name.is_null() {
        return entries().len();
    }
    // SAFETY: it is not null, so the caller gave a string that ends.
    let name = unsafe { CStr::from_ptr(name) };
    let mut found = entries().iter().enumerate().filter(|(_, entry)| entry.name.as_c_str() == name);
    let qualified = || entries().iter().position(|entry| entry.qualified.as_c_str() == name);
    let index = match (found.next(), found.next()) {
        (Some((index, _)), None) => Some(index),
        (None, _) => qualified(),
        _ => None,
    };
    index.unwrap_or(entries().len())
}

/// Shape and formats of an instruction.
///
/// # Safety
/// `description` is null, or points to memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn generated_model_describe(index: usize, description: *mut Description) -> c_int {
    let Some(entry) = entries().get(index) else { return NO_SUCH_INSTRUCTION };
    if description.is_null() {
        return NULL_POINTER;
    }
    let own = entry.prepared.instruction();
    let scale = own.scale();
    let [a, b, c, d, scale_name] = &entry.formats;
    let told = Description {
        name: entry.name.as_ptr(),
        sheet: entry.sheet.as_ptr(),
        a: a.as_ptr(),
        b: b.as_ptr(),
        c: c.as_ptr(),
        d: d.as_ptr(),
        scale: scale.map_or(std::ptr::null(), |_| scale_name.as_ptr()),
        m: own.m(),
        n: own.n(),
        k: own.k(),
        block: scale.map_or(0, |scale| scale.block),
        a_bytes: own.a().bytes,
        b_bytes: own.b().bytes,
        c_bytes: own.c().bytes,
        scale_bytes: scale.map_or(0, |scale| scale.format.bytes),
        d_bytes: own.d().bytes,
    };
    // SAFETY: it is not null, so the caller gave memory for a description; strings live forever.
    unsafe { description.write(told) };
    OK
}

/// Computes D = A·B + C for `count` problems.
///
/// # Safety
/// Each pointer is null, or points to as many bytes as `count` problems take in that array; those of D
/// can be written and overlap none of the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn generated_model_execute(
    index: usize,
    count: usize,
    a: *const c_void,
    b: *const c_void,
    c: *const c_void,
    sa: *const c_void,
    sb: *const c_void,
    d: *mut c_void,
) -> c_int {
    let Some(Entry { prepared, .. }) = entries().get(index) else { return NO_SUCH_INSTRUCTION };
    let lengths = prepared.instruction().bytes().map(|each| each.checked_mul(count));
    if lengths.iter().any(|length| length.is_none_or(|length| length > isize::MAX as usize)) {
        return TOO_MANY_PROBLEMS;
    }
    let lengths = lengths.map(Option::unwrap_or_default);
    if [a, b, c, sa, sb, d.cast_const()]
        .iter()
        .zip(lengths)
        .any(|(array, length)| array.is_null() && length > 0)
    {
        return NULL_POINTER;
    }
    let [a_length, b_length, c_length, sa_length, sb_length, d_length] = lengths;
    let bytes = |array: *const c_void, length: usize| match length {
        0 => &[][..],
        // SAFETY: it is not null, so the caller gave that many bytes.
        _ => unsafe { std::slice::from_raw_parts(array.cast::<u8>(), length) },
    };
    let batch = Batch {
        count,
        a: bytes(a, a_length),
        b: bytes(b, b_length),
        c: bytes(c, c_length),
        sa: bytes(sa, sa_length),
        sb: bytes(sb, sb_length),
    };
    let results = match d_length {
        0 => &mut [][..],
        // SAFETY: it is not null, so the caller gave that many bytes, for this function alone.
        _ => unsafe { std::slice::from_raw_parts_mut(d.cast::<u8>(), d_length) },
    };
    prepared.execute_bytes(&batch, results).expect("the lengths are those of the instruction");
    OK
}
