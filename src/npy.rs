//! NPY files, as `numpy.save` writes them, to matrices of bit patterns and back.
//!
//! Elements are bit patterns of a [`Format`], never rounded and never converted. What numpy calls
//! them:
//!
//! | format | dtype | as `descr` has it |
//! |---|---|---|
//! | fp64, fp32, fp16 | `float64`, `float32`, `float16` | `<f8`, `<f4`, `<f2` |
//! | tf32 | `float32`, its 13 lowest bits as they are | `<f4` |
//! | bf16 | `ml_dtypes.bfloat16` | `<V2` |
//! | e5m2 | `ml_dtypes.float8_e5m2` | `<f1` |
//! | all others | `ml_dtypes.float8_e4m3fn`, `float6_e3m2fn`, `float4_e2m1fn`, … | `<V1` |
//! | every format | unsigned integers of its size | `\|u1`, `<u2`, `<u4`, `<u8` |
//!
//! `<V1` does not say which format it is; the instruction's is assumed. Formats narrower than a
//! byte lie in its low bits. The format of files is that of `numpy.lib.format`, versions 1 to 3.
//! (The crate npyz refuses `<f1`, which numpy does write.)

use std::fmt;

use crate::matrix::Matrix;
use crate::model::Format;

/// A two-dimensional array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    dtype: Dtype,
    rows: usize,
    columns: usize,
    /// Row by row, elements little-endian.
    bytes: Vec<u8>,
}

/// What an array's elements are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dtype {
    /// As the file has it: `<f4`.
    descr: String,
    kind: char,
    bytes: usize,
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = 8 * self.bytes;
        match (self.kind, self.bytes) {
            ('f', 1) => write!(f, "ml_dtypes.float8_e5m2"),
            ('f', _) => write!(f, "float{bits}"),
            ('u', _) => write!(f, "uint{bits}"),
            ('i', _) => write!(f, "int{bits}"),
            ('c', _) => write!(f, "complex{bits}"),
            ('b', _) => write!(f, "bool"),
            ('V', 2) => write!(f, "ml_dtypes.bfloat16 or other 2-byte data ('{}')", self.descr),
            ('V', 1) => write!(f, "an ml_dtypes type of 1 byte ('{}')", self.descr),
            _ => write!(f, "'{}'", self.descr),
        }
    }
}

/// Why a file is no matrix of bit patterns of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    /// It does not begin as NPY files do.
    #[error("not an NPY file (write one with numpy.save; npz archives and text are not read)")]
    Magic,
    /// It is of a version that did not exist in 2026.
    #[error("NPY version {0}.{1} is unknown; 1.0, 2.0 and 3.0 are read")]
    Version(u8, u8),
    /// The header makes no sense.
    #[error("bad NPY header: {0}")]
    Header(String),
    /// The array is not a matrix.
    #[error("expected a matrix, two dimensions; found shape {found}")]
    Dimensions {
        /// The shape as Python writes it.
        found: String,
    },
    /// There are more or fewer elements than the shape says.
    #[error("shape {rows}×{columns} of {each}-byte elements takes {expected} bytes; the file has {found}")]
    Length {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
        /// Bytes of an element.
        each: usize,
        /// Bytes of all elements.
        expected: u128,
        /// Bytes after the header.
        found: usize,
    },
    /// The elements are something else than bit patterns of the format.
    #[error("expected {expected}, found {found}{hint}")]
    Dtype {
        /// The dtypes that hold the format.
        expected: String,
        /// The array's.
        found: String,
        /// How to come from one to the other.
        hint: String,
    },
    /// An element has bits that the format does not have.
    #[error("element [{row}, {column}] is {bits:#x}, which has bits outside {format}")]
    Bits {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// What it is.
        bits: u64,
        /// The format.
        format: &'static str,
    },
}

/// Bytes that NPY files begin with.
const MAGIC: &[u8] = b"\x93NUMPY";

impl Array {
    /// Reads the contents of a file. Fortran order and big-endian elements are put into order.
    ///
    /// # Errors
    /// If it is not an NPY file that holds a matrix.
    pub fn parse(file: &[u8]) -> Result<Array, NpyError> {
        let cut = || NpyError::Header("the file ends within it".into());
        let rest = file.strip_prefix(MAGIC).ok_or(NpyError::Magic)?;
        let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
        let (length, rest) = match version {
            [1, 0] => {
                let (length, rest) = rest.split_first_chunk().ok_or_else(cut)?;
                (usize::from(u16::from_le_bytes(*length)), rest)
            }
            [2 | 3, 0] => {
                let (length, rest) = rest.split_first_chunk().ok_or_else(cut)?;
                (u32::from_le_bytes(*length) as usize, rest)
            }
            &[major, minor] => return Err(NpyError::Version(major, minor)),
        };
        let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
        let header = Header::parse(header).map_err(NpyError::Header)?;
        header.array(data)
    }

    /// The array as a matrix of bit patterns of a format.
    ///
    /// # Errors
    /// If its elements are not patterns of that format.
    pub fn into_matrix(self, format: &Format) -> Result<Matrix, NpyError> {
        let Dtype { kind, bytes, .. } = self.dtype;
        let named = Named::of(format);
        let fits = match kind {
            'u' => true,
            'f' => named.stored == 'f',
            // Older versions of ml_dtypes may store e5m2 like its siblings.
            'V' => named.stored == 'V' || format.bytes == 1,
            _ => false,
        };
        if !fits || bytes != format.bytes {
            let bits = 8 * format.bytes;
            let hint = match kind {
                'f' => format!("; nothing is rounded here, convert it first: x.astype({})", named.dtype),
                'i' if bytes == format.bytes => format!("; if these are bit patterns: x.view('uint{bits}')"),
                _ => String::new(),
            };
            return Err(NpyError::Dtype {
                expected: format!("{} (or uint{bits} bit patterns) for {format}", named.dtype),
                found: self.dtype.to_string(),
                hint,
            });
        }
        let matrix = Matrix::new(*format, self.rows, self.columns, self.bytes);
        match matrix.beyond_format() {
            None => Ok(matrix),
            Some((row, column, bits)) => Err(NpyError::Bits { row, column, bits, format: format.name }),
        }
    }
}

/// A format as numpy knows it.
struct Named {
    /// The dtype in Python.
    dtype: &'static str,
    /// The kind that `descr` gives it.
    stored: char,
}

impl Named {
    fn of(format: &Format) -> Named {
        let (dtype, stored) = match format.name {
            "fp64" => ("float64", 'f'),
            "fp32" | "tf32" => ("float32", 'f'),
            "fp16" => ("float16", 'f'),
            "bf16" => ("ml_dtypes.bfloat16", 'V'),
            "e5m2" => ("ml_dtypes.float8_e5m2", 'f'),
            "e4m3" | "ue4m3" => ("ml_dtypes.float8_e4m3fn", 'V'),
            "e5m2fnuz" => ("ml_dtypes.float8_e5m2fnuz", 'V'),
            "e4m3fnuz" => ("ml_dtypes.float8_e4m3fnuz", 'V'),
            "e3m2" => ("ml_dtypes.float6_e3m2fn", 'V'),
            "e2m3" => ("ml_dtypes.float6_e2m3fn", 'V'),
            "e2m1" => ("ml_dtypes.float4_e2m1fn", 'V'),
            "ue8m0" => ("ml_dtypes.float8_e8m0fnu", 'V'),
            // A format that numpy has no name for.
            _ => ("unsigned integers", 'u'),
        };
        Named { dtype, stored }
    }
}

/// The file that holds a matrix: floating-point numbers where numpy has the format itself, unsigned
/// integers otherwise (`x.view(ml_dtypes.bfloat16)` makes them numbers).
pub fn write(matrix: &Matrix) -> Vec<u8> {
    let format = matrix.format();
    let bytes = format.bytes;
    let descr = match Named::of(format).stored {
        'f' if bytes > 1 => format!("<f{bytes}"),
        _ if bytes > 1 => format!("<u{bytes}"),
        _ => "|u1".to_string(),
    };
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // Elements begin at a multiple of 64 bytes, as numpy has it, so that they can be mapped.
    let before = MAGIC.len() + 4;
    let length = (before + header.len() + 1).next_multiple_of(64) - before;
    header.push_str(&" ".repeat(length - 1 - header.len()));
    header.push('\n');
    let mut file = MAGIC.to_vec();
    file.extend([1, 0]);
    // Two numbers of 20 digits at most: it always fits.
    file.extend((length as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(matrix.bytes());
    file
}

/// The header: a Python dictionary.
struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &[u8]) -> Result<Header, String> {
        let text = std::str::from_utf8(text).map_err(|_| "it is not text".to_string())?;
        let mut scanner = Scanner { rest: text };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        scanner.expect('{')?;
        while !scanner.take('}') {
            let key = scanner.string().ok_or_else(|| scanner.unexpected("a key"))?;
            scanner.expect(':')?;
            match key {
                "descr" => {
                    let value = scanner.string();
                    descr = Some(value.ok_or("'descr' is no plain dtype; structured arrays are not read")?);
                }
                "fortran_order" => {
                    let value = scanner.boolean();
                    fortran = Some(value.ok_or_else(|| scanner.unexpected("True or False"))?);
                }
                "shape" => shape = Some(scanner.tuple()?),
                _ => return Err(format!("it has an unknown key '{}'", key.escape_debug())),
            }
            if !scanner.take(',') {
                scanner.expect('}')?;
                break;
            }
        }
        if !scanner.rest.trim().is_empty() {
            return Err(scanner.unexpected("its end"));
        }
        Ok(Header {
            descr: descr.ok_or("it lacks 'descr'")?.to_string(),
            fortran: fortran.ok_or("it lacks 'fortran_order'")?,
            shape: shape.ok_or("it lacks 'shape'")?,
        })
    }

    /// The byte order, kind and size of elements.
    fn dtype(&self) -> Result<(char, Dtype), NpyError> {
        let bad = || NpyError::Header(format!("'{}' is no dtype", self.descr.escape_debug()));
        let mut characters = self.descr.chars();
        let (Some(order @ ('<' | '>' | '|' | '=')), Some(kind)) = (characters.next(), characters.next())
        else {
            return Err(bad());
        };
        // 'O' has no size, 'M8' has a unit after it.
        let digits = characters.as_str();
        let digits = digits.split_once('[').map_or(digits, |(digits, _)| digits);
        let bytes = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| bad())? };
        Ok((order, Dtype { descr: self.descr.clone(), kind, bytes }))
    }

    fn array(self, data: &[u8]) -> Result<Array, NpyError> {
        let (order, dtype) = self.dtype()?;
        let &[rows, columns] = &self.shape[..] else {
            let sizes: Vec<String> = self.shape.iter().map(usize::to_string).collect();
            let comma = if sizes.len() == 1 { "," } else { "" };
            return Err(NpyError::Dimensions { found: format!("({}{comma})", sizes.join(", ")) });
        };
        let each = dtype.bytes;
        // Objects and strings have no size to check; they are refused by what they are.
        let sized = matches!(dtype.kind, 'f' | 'u' | 'i' | 'V' | 'c' | 'b');
        let expected = (rows as u128).saturating_mul(columns as u128).saturating_mul(each as u128);
        if sized && expected != data.len() as u128 {
            return Err(NpyError::Length { rows, columns, each, expected, found: data.len() });
        }
        let mut bytes = data.to_vec();
        if sized && each > 1 && (order == '>' || order == '=' && cfg!(target_endian = "big")) {
            bytes.chunks_exact_mut(each).for_each(<[u8]>::reverse);
        }
        if sized && self.fortran && each > 0 {
            bytes = (0..rows)
                .flat_map(|row| (0..columns).map(move |column| (column * rows + row) * each))
                .flat_map(|at| &bytes[at..at + each])
                .copied()
                .collect();
        }
        Ok(Array { dtype, rows, columns, bytes })
    }
}

/// Reads the few Python literals that headers are made of.
struct Scanner<'t> {
    rest: &'t str,
}

impl<'t> Scanner<'t> {
    fn take(&mut self, character: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, character: char) -> Result<(), String> {
        if self.take(character) { Ok(()) } else { Err(self.unexpected(&format!("'{character}'"))) }
    }

    fn unexpected(&self, expected: &str) -> String {
        let start: String = self.rest.trim().chars().take(20).collect();
        format!("expected {expected} at \"{}\"", start.escape_debug())
    }

    /// A string without escapes; none that numpy writes for what is read here has any.
    fn string(&mut self) -> Option<&'t str> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (string, rest) = rest[1..].split_once(quote)?;
        self.rest = rest;
        Some(string)
    }

    fn boolean(&mut self) -> Option<bool> {
        let rest = self.rest.trim_start();
        [("True", true), ("False", false)].into_iter().find_map(|(name, value)| {
            self.rest = rest.strip_prefix(name)?;
            Some(value)
        })
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        self.expect('(')?;
        let mut sizes = Vec::new();
        while !self.take(')') {
            let rest = self.rest.trim_start();
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            sizes.push(rest[..digits].parse().map_err(|_| self.unexpected("a size"))?);
            self.rest = &rest[digits..];
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::format::{BF16, E2M1, E4M3, E5M2, FP16, FP32, FP64, TF32};

    /// A file with this header, padded as numpy does.
    fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let fortran = if fortran { "True" } else { "False" };
        let mut file = b"\x93NUMPY\x01\x00v\x00".to_vec();
        let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        file.extend(format!("{header:<117}\n").bytes());
        assert_eq!(file.len(), 128);
        file.extend(data);
        file
    }

    fn bits(matrix: &Matrix) -> Vec<u64> {
        let places = (0..matrix.rows()).flat_map(|i| (0..matrix.columns()).map(move |j| (i, j)));
        places.map(|(i, j)| matrix.get(i, j)).collect()
    }

    fn read(file: &[u8], format: &Format) -> Result<Vec<u64>, String> {
        let matrix = Array::parse(file).and_then(|array| array.into_matrix(format));
        matrix.map(|matrix| bits(&matrix)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_numpy_2_4_writes_for_ml_dtypes_is_read() {
        // numpy.save of arange(6).reshape(2, 3), cast.
        let bfloat16 = b"\x00\x00\x80?\x00@@@\x80@\xa0@";
        assert_eq!(
            read(&file("<V2", false, "(2, 3)", bfloat16), &BF16),
            Ok(vec![0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0])
        );
        assert_eq!(
            read(&file("<f1", false, "(2, 3)", b"\x00<@BDE"), &E5M2),
            Ok(vec![0, 0x3c, 0x40, 0x42, 0x44, 0x45])
        );
        assert_eq!(
            read(&file("<V1", false, "(2, 3)", b"\x008@DHJ"), &E4M3),
            Ok(vec![0, 0x38, 0x40, 0x44, 0x48, 0x4a])
        );
        assert_eq!(
            read(&file("<V1", false, "(2, 3)", b"\x00\x02\x04\x05\x06\x06"), &E2M1),
            Ok(vec![0, 2, 4, 5, 6, 6])
        );
    }

    #[test]
    fn big_endian_and_fortran_order_are_put_into_order() {
        let data: Vec<u8> = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0].iter().flat_map(|x| x.to_be_bytes()).collect();
        let expected = (1..=6).map(|x| u64::from((x as f32).to_bits())).collect();
        assert_eq!(read(&file(">f4", true, "(2, 3)", &data), &FP32), Ok(expected));
    }

    #[test]
    fn unsigned_integers_hold_every_format() {
        for format in Format::ALL {
            let descr = format!("<u{}", format.bytes);
            let mut data = vec![0; format.bytes];
            data[0] = 1;
            assert_eq!(read(&file(&descr, false, "(1, 1)", &data), &format), Ok(vec![1]));
        }
    }

    #[test]
    fn other_dtypes_are_refused_with_what_was_expected() {
        for (descr, format, message) in [
            (
                "<f4",
                BF16,
                "expected ml_dtypes.bfloat16 (or uint16 bit patterns) for bf16, found float32; nothing is \
                 rounded here, convert it first: x.astype(ml_dtypes.bfloat16)",
            ),
            (
                "<V2",
                FP16,
                "expected float16 (or uint16 bit patterns) for fp16, found ml_dtypes.bfloat16 or other \
                 2-byte data ('<V2')",
            ),
            (
                "|i1",
                E4M3,
                "expected ml_dtypes.float8_e4m3fn (or uint8 bit patterns) for e4m3, found int8; if these \
                 are bit patterns: x.view('uint8')",
            ),
            (
                "<f1",
                E4M3,
                "expected ml_dtypes.float8_e4m3fn (or uint8 bit patterns) for e4m3, found \
                 ml_dtypes.float8_e5m2; nothing is rounded here, convert it first: \
                 x.astype(ml_dtypes.float8_e4m3fn)",
            ),
            ("|O", FP64, "expected float64 (or uint64 bit patterns) for fp64, found '|O'"),
        ] {
            let size = descr[2..].parse().unwrap_or(8);
            assert_eq!(
                read(&file(descr, false, "(1, 1)", &vec![0; size]), &format),
                Err(message.to_string())
            );
        }
        assert_eq!(
            read(&file("|u1", false, "(1, 2)", &[3, 0x13]), &E2M1),
            Err("element [0, 1] is 0x13, which has bits outside e2m1".to_string())
        );
    }

    #[test]
    fn damaged_files_are_refused_wherever_they_end() {
        let good = file("<f4", false, "(1, 2)", &[0; 8]);
        for length in 0..good.len() {
            assert!(read(&good[..length], &FP32).is_err(), "{length}");
        }
        for (file, message) in [
            (b"PK\x03\x04".to_vec(), "not an NPY file"),
            (b"\x93NUMPY\x04\x00".to_vec(), "version 4.0"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(), "ends within"),
            (file("<f4", false, "(1, 2)", &[0; 9]), "takes 8 bytes; the file has 9"),
            (file("<f4", false, "(2,)", &[0; 8]), "found shape (2,)"),
            (file("<f4", false, "(1, 1, 2)", &[0; 8]), "found shape (1, 1, 2)"),
            (file("<f4", false, "(-1, 2)", &[0; 8]), "expected a size at \"-1"),
            (file("<f4", false, "(4294967296, 4294967297)", &[0; 8]), "takes 73786976312018075648 bytes"),
            (file("<f9999999999999999999999", false, "(1, 1)", &[]), "is no dtype"),
            (file("f4", false, "(1, 2)", &[0; 8]), "is no dtype"),
        ] {
            let error = read(&file, &FP32).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn headers_are_python() {
        let parse = |text: &str| {
            Header::parse(text.as_bytes()).map(|header| (header.descr, header.fortran, header.shape))
        };
        assert_eq!(
            parse("{\"shape\":(3,),\"descr\":\"<f8\",\"fortran_order\":True}\n"),
            Ok(("<f8".to_string(), true, vec![3]))
        );
        for (text, message) in [
            ("", "expected '{' at \"\""),
            ("{'shape': (1, 1)}", "it lacks 'descr'"),
            ("{'descr': [('x', '<f4')], }", "structured arrays are not read"),
            ("{'colour': 1}", "unknown key 'colour'"),
            ("{'fortran_order': 0}", "expected True or False at \"0}\""),
            ("{'shape': (1 2)}", "expected ')' at \"2)}\""),
            ("{'descr': '<f4'} x", "expected its end at \"x\""),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn what_is_written_is_laid_out_as_numpy_does_it_and_read_again() {
        for (format, descr) in
            [(FP64, "<f8"), (FP32, "<f4"), (TF32, "<f4"), (FP16, "<f2"), (BF16, "<u2"), (E5M2, "|u1")]
        {
            let mut matrix = Matrix::zeros(format, 2, 3);
            matrix.set(1, 2, 0x11);
            let written = write(&matrix);
            assert_eq!(written, file(descr, false, "(2, 3)", matrix.bytes()));
            assert_eq!(Array::parse(&written).unwrap().into_matrix(&format).unwrap(), matrix);
        }
    }
}
