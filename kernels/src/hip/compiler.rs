//! ROCm's run-time compiler, hiprtc: from a kernel's text to code for a target.
//!
//! It is loaded when it is first needed. ROCm has it in a library of its own; before 5.3 (Debian's) it
//! was part of the HIP runtime, which this program is linked with.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use libloading::os::unix::Library;

use crate::fault::Fault;

/// A program of hiprtc.
type Handle = *mut c_void;
/// Success, of hiprtc's results.
const SUCCESS: c_int = 0;
/// The text does not compile: its log says why.
const COMPILATION: c_int = 6;

/// What is said where there is none.
const NO_COMPILER: &str =
    "there is no hiprtc: libhiprtc.so cannot be loaded. Install ROCm's run-time compiler";

/// hiprtc, loaded.
#[derive(Debug)]
pub struct Compiler {
    library: Library,
}

impl Compiler {
    /// Loads that of the ROCm release whose runtime has this major version.
    ///
    /// # Errors
    /// If there is none.
    pub fn load(major: u32) -> Result<Compiler, Fault> {
        let names = [
            format!("libhiprtc.so.{major}"),
            "libhiprtc.so".to_string(),
            "/opt/rocm/lib/libhiprtc.so".to_string(),
        ];
        // SAFETY: loading a library runs its initialisers; ROCm's is made for that.
        let found = names.iter().find_map(|name| unsafe { Library::new(name) }.ok());
        let compiler = Compiler { library: found.unwrap_or_else(Library::this) };
        compiler.function::<unsafe extern "C" fn()>(c"hiprtcCreateProgram")?;
        Ok(compiler)
    }

    /// Compiles a text for a target, such as `gfx90a:sramecc+:xnack-`.
    ///
    /// # Errors
    /// If the compiler refuses: the text is wrong, or the target lacks the instruction.
    pub fn compile(&self, source: &str, target: &str) -> Result<Vec<u8>, Fault> {
        type Create = unsafe extern "C" fn(
            *mut Handle,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int;
        type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int;
        type Destroy = unsafe extern "C" fn(*mut Handle) -> c_int;
        let create: Create = self.function(c"hiprtcCreateProgram")?;
        let compile: Compile = self.function(c"hiprtcCompileProgram")?;
        let destroy: Destroy = self.function(c"hiprtcDestroyProgram")?;
        let source = CString::new(source).expect("a kernel has no zero bytes");
        let option = CString::new(format!("--gpu-architecture={target}")).expect("a target has none");
        let options = [option.as_ptr()];
        let mut program = ptr::null_mut();
        // SAFETY: the strings end with a zero byte, there are no headers, and the handle is written.
        let created = unsafe {
            create(&raw mut program, source.as_ptr(), c"mfma.hip".as_ptr(), 0, ptr::null(), ptr::null())
        };
        check("hiprtcCreateProgram", created)?;
        // SAFETY: the program is alive, and there is one option.
        let result = unsafe { compile(program, 1, options.as_ptr()) };
        let code = match result {
            SUCCESS => self.output(program, c"hiprtcGetCodeSize", c"hiprtcGetCode"),
            COMPILATION => {
                let log = self.output(program, c"hiprtcGetProgramLogSize", c"hiprtcGetProgramLog");
                log.and_then(|log| Err(Fault::Refused(complaint(&String::from_utf8_lossy(&log)))))
            }
            code => check("hiprtcCompileProgram", code).map(|()| Vec::new()),
        };
        // SAFETY: it was created once, and is destroyed once.
        let _ = unsafe { destroy(&raw mut program) };
        code
    }

    /// What a program has of something: by a function that says its size and one that writes it.
    fn output(&self, program: Handle, size: &CStr, get: &CStr) -> Result<Vec<u8>, Fault> {
        let size: unsafe extern "C" fn(Handle, *mut usize) -> c_int = self.function(size)?;
        let get: unsafe extern "C" fn(Handle, *mut c_char) -> c_int = self.function(get)?;
        let mut length = 0;
        // SAFETY: writes one integer.
        check("hiprtc's size of its output", unsafe { size(program, &raw mut length) })?;
        let mut bytes = vec![0u8; length];
        // SAFETY: the buffer is as long as was said.
        check("hiprtc's output", unsafe { get(program, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }

    fn function<T: Copy>(&self, name: &CStr) -> Result<T, Fault> {
        // SAFETY: callers ask for functions of hiprtc's interface by their types in its header.
        let symbol = unsafe { self.library.get::<T>(name.to_bytes_with_nul()) };
        symbol.map(|symbol| *symbol).map_err(|_| Fault::Missing(NO_COMPILER))
    }
}

fn check(call: &'static str, result: c_int) -> Result<(), Fault> {
    match result {
        SUCCESS => Ok(()),
        code => Err(Fault::Other { call, code: format!("hiprtc result {code}") }),
    }
}

/// The first error of a log, in a line.
fn complaint(log: &str) -> String {
    let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "\0");
    let first = lines().find(|line| line.contains("error:")).or_else(|| lines().next());
    first.map_or_else(|| "the compiler says nothing".to_string(), str::to_string)
}
