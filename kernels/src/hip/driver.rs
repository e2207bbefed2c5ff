//! AMD's HIP runtime: which GPUs there are, and how kernels get onto them.
//!
//! The runtime is linked (`hip-runtime-sys`). Its bindings are those of HIP 5.4; what is used of them
//! here has the same binary interface in ROCm 5, 6 and 7. Two things are kept away from them: results,
//! which are an `enum` there that a newer runtime may leave, are taken as the integers that they are;
//! and the properties of a device, whose layout changed with ROCm 6, are asked for by the versions of
//! the function that say which layout they mean.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use hip_runtime_sys as sys;
use libloading::os::unix::Library;
use sys::hipError_t;

use super::compiler::Compiler;
use super::{ENTRY, Program, THREADS};
use crate::fault::Fault;
use crate::stream::Runtime;

/// What is said where the runtime sees no GPU.
fn no_gpu() -> Fault {
    let text = "AMD's HIP runtime sees no GPU. Is one attached, is the amdgpu driver loaded, may you use \
                /dev/kfd (group render), and is it visible (ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES)?";
    Fault::NoGpu(text.to_string())
}

/// What a result of the runtime's function means; `None` for success.
pub fn fault_of(call: &'static str, result: u32) -> Option<Fault> {
    use hipError_t as E;
    let is = |error: E| result == error as u32;
    let any = |errors: &[E]| errors.iter().any(|&error| is(error));
    if is(E::hipSuccess) {
        return None;
    }
    Some(if any(&[E::hipErrorNoDevice, E::hipErrorInsufficientDriver]) {
        no_gpu()
    } else if is(E::hipErrorOutOfMemory) {
        Fault::OutOfMemory(0)
    } else if any(&[E::hipErrorNoBinaryForGpu, E::hipErrorInvalidKernelFile]) {
        Fault::Refused(error_name(result))
    } else if any(&[
        E::hipErrorIllegalAddress,
        E::hipErrorLaunchTimeOut,
        E::hipErrorLaunchFailure,
        E::hipErrorAssert,
        E::hipErrorECCNotCorrectable,
    ]) {
        Fault::Launch(error_name(result))
    } else {
        Fault::Other { call, code: error_name(result) }
    })
}

/// The runtime's name of a result.
fn error_name(result: u32) -> String {
    // SAFETY: the argument is passed as the integer that it is, whatever it is; the runtime answers
    // with a constant string.
    let name = unsafe {
        let function = sys::hipGetErrorName as unsafe extern "C" fn(hipError_t) -> *const c_char;
        let function: unsafe extern "C" fn(u32) -> *const c_char = std::mem::transmute(function);
        let name = function(result);
        if name.is_null() { None } else { Some(CStr::from_ptr(name).to_string_lossy().into_owned()) }
    };
    name.unwrap_or_else(|| format!("HIP error {result}"))
}

/// A function of the runtime that gives its result as an integer.
trait Raw {
    type Raw;
    fn raw(self) -> Self::Raw;
}

macro_rules! raw {
    ($($argument:ident)*) => {
        impl<$($argument),*> Raw for unsafe extern "C" fn($($argument),*) -> hipError_t {
            type Raw = unsafe extern "C" fn($($argument),*) -> u32;

            fn raw(self) -> Self::Raw {
                // SAFETY: the enum is represented as that integer.
                unsafe { std::mem::transmute(self) }
            }
        }
    };
}
raw!(A);
raw!(A B);
raw!(A B C);
raw!(A B C D);
raw!(A B C D E F G H I J K);

macro_rules! any {
    ($argument:expr) => {
        _
    };
}

/// Calls a function of the runtime and turns what it says into a fault. Unsafe as the function is.
macro_rules! call {
    ($function:ident, $($argument:expr),*) => {{
        let function = sys::$function as unsafe extern "C" fn($(any!($argument)),*) -> hipError_t;
        fault_of(stringify!($function), function.raw()($($argument),*)).map_or(Ok(()), Err)
    }};
}

/// A GPU that the runtime sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its number.
    pub ordinal: usize,
    /// Its marketing name: `AMD Instinct MI300X`.
    pub name: String,
    /// What to compile for: `gfx942:sramecc+:xnack-`.
    pub architecture: String,
    /// Its compute units.
    pub compute_units: u32,
    /// Its memory in bytes.
    pub memory: usize,
    /// The version of the runtime: 60443484 for 6.4.43484.
    pub runtime: u32,
}

impl Gpu {
    /// The ISA target alone: `gfx942`.
    pub fn target(&self) -> &str {
        self.architecture.split(':').next().unwrap_or_default()
    }

    /// The version of the runtime, in words.
    pub fn runtime_version(&self) -> String {
        let [major, minor, patch] = version(self.runtime);
        format!("{major}.{minor}.{patch}")
    }
}

/// Major, minor and patch version of the runtime.
fn version(runtime: u32) -> [u32; 3] {
    [runtime / 10_000_000, runtime / 100_000 % 100, runtime % 100_000]
}

/// The release of the kernel's driver, if the system tells.
pub fn release() -> Option<String> {
    let version = std::fs::read_to_string("/sys/module/amdgpu/version").ok();
    version.map(|text| text.trim().to_string())
}

/// The version of the runtime, as [`Gpu::runtime`] has it.
///
/// # Errors
/// If it does not say.
pub fn runtime() -> Result<u32, Fault> {
    let mut version = 0;
    // SAFETY: writes one integer.
    unsafe { call!(hipRuntimeGetVersion, &raw mut version)? };
    Ok(version as u32)
}

/// The GPUs that the runtime sees.
///
/// # Errors
/// If it sees none.
pub fn gpus() -> Result<Vec<Gpu>, Fault> {
    let mut count = 0;
    // It initialises the runtime, too, and tells the lack of a GPU apart, which hipInit does not.
    // SAFETY: writes one integer.
    unsafe { call!(hipGetDeviceCount, &raw mut count)? };
    let runtime = runtime()?;
    if count == 0 {
        return Err(no_gpu());
    }
    (0..count)
        .map(|ordinal: c_int| {
            let (mut name, mut memory, mut units) = ([0u8; 256], 0, 0);
            let attribute = sys::hipDeviceAttribute_t::hipDeviceAttributeMultiprocessorCount;
            // SAFETY: the name's buffer is as long as said; the others write one integer each.
            unsafe {
                let length = name.len() as c_int;
                call!(hipDeviceGetName, name.as_mut_ptr().cast::<c_char>(), length, ordinal)?;
                call!(hipDeviceTotalMem, &raw mut memory, ordinal)?;
                call!(hipDeviceGetAttribute, &raw mut units, attribute, ordinal)?;
            }
            Ok(Gpu {
                ordinal: ordinal as usize,
                name: text(&name),
                architecture: architecture(ordinal)?,
                compute_units: units as u32,
                memory,
                runtime,
            })
        })
        .collect()
}

/// Text up to a zero byte.
fn text(bytes: &[u8]) -> String {
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// What to compile for a GPU, from its properties.
fn architecture(ordinal: c_int) -> Result<String, Fault> {
    // The functions that say which layout they mean, where the architecture's name begins in it, and
    // the layout that the name without a version has always meant.
    const VERSIONS: [(&CStr, usize); 3] = [
        (c"hipGetDevicePropertiesR0600", 1160),
        (c"hipGetDevicePropertiesR0000", 396),
        (c"hipGetDeviceProperties", 396),
    ];
    /// More than any version has, and aligned for all of them.
    #[repr(C, align(16))]
    struct Properties([u8; 8192]);

    let this = Library::this();
    for (name, offset) in VERSIONS {
        // SAFETY: that is the type of each of them.
        let function = unsafe {
            this.get::<unsafe extern "C" fn(*mut Properties, c_int) -> u32>(name.to_bytes_with_nul())
        };
        if let Ok(function) = function {
            let mut properties = Properties([0; 8192]);
            // SAFETY: the buffer is larger than what is written.
            let result = unsafe { function(&raw mut properties, ordinal) };
            fault_of("hipGetDeviceProperties", result).map_or(Ok(()), Err)?;
            return Ok(text(&properties.0[offset..offset + 256]));
        }
    }
    Err(Fault::Other { call: "hipGetDeviceProperties", code: "the runtime does not have it".to_string() })
}

/// A GPU in use.
pub type Session = crate::stream::Session<Driver>;

/// The runtime, with a GPU and the compiler for it.
#[derive(Debug)]
pub struct Driver {
    gpu: Gpu,
    compiler: Compiler,
}

/// A kernel on a GPU.
///
/// It belongs to the [`Session`] that loaded it and lives as long as the process: there are few.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    function: sys::hipFunction_t,
}

// SAFETY: a handle that only a session, on its own GPU, makes use of.
unsafe impl Send for Kernel {}
// SAFETY: likewise.
unsafe impl Sync for Kernel {}

impl Runtime for Driver {
    type Gpu = Gpu;
    type Program = Program;
    type Kernel = Kernel;
    type Stream = sys::hipStream_t;
    type Event = sys::hipEvent_t;

    fn gpus() -> Result<Vec<Gpu>, Fault> {
        gpus()
    }

    fn open(gpu: Gpu) -> Result<Driver, Fault> {
        let [major, ..] = version(gpu.runtime);
        Ok(Driver { gpu, compiler: Compiler::load(major)? })
    }

    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn multiprocessors(&self) -> u32 {
        self.gpu.compute_units
    }

    fn enter(&self) -> Result<(), Fault> {
        // SAFETY: there is a GPU of that number.
        unsafe { call!(hipSetDevice, self.gpu.ordinal as c_int) }
    }

    // A GPU's context is the runtime's own, and ends with the process.
    fn leave(&mut self) {}

    fn load(&self, program: &Program) -> Result<Kernel, Fault> {
        let code = self.compiler.compile(&program.source, &self.gpu.architecture)?;
        let name = CString::new(ENTRY).expect("a name without zero bytes");
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the code is an object with its own length, which the runtime copies; the module stays
        // loaded; the name ends with a zero byte.
        unsafe {
            call!(hipModuleLoadData, &raw mut module, code.as_ptr().cast::<c_void>())?;
            call!(hipModuleGetFunction, &raw mut function, module, name.as_ptr())?;
        }
        Ok(Kernel { function })
    }

    fn free_bytes() -> Result<usize, Fault> {
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: writes two integers.
        unsafe { call!(hipMemGetInfo, &raw mut free, &raw mut total)? };
        Ok(free)
    }

    fn allocate_host(bytes: usize) -> Result<*mut c_void, Fault> {
        let mut memory = ptr::null_mut();
        // SAFETY: writes one pointer.
        unsafe { call!(hipHostMalloc, &raw mut memory, bytes, 0 as c_uint)? };
        Ok(memory)
    }

    unsafe fn free_host(memory: *mut c_void) {
        // SAFETY: see the trait.
        let _ = unsafe { call!(hipHostFree, memory) };
    }

    fn allocate(bytes: usize) -> Result<u64, Fault> {
        let mut memory = ptr::null_mut();
        // SAFETY: writes one address.
        unsafe { call!(hipMalloc, &raw mut memory, bytes)? };
        Ok(memory as u64)
    }

    unsafe fn free(memory: u64) {
        // SAFETY: see the trait.
        let _ = unsafe { call!(hipFree, memory as *mut c_void) };
    }

    fn stream() -> Result<sys::hipStream_t, Fault> {
        let mut stream = ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { call!(hipStreamCreateWithFlags, &raw mut stream, sys::hipStreamNonBlocking)? };
        Ok(stream)
    }

    unsafe fn end_stream(stream: sys::hipStream_t) {
        // SAFETY: see the trait.
        unsafe {
            let _ = call!(hipStreamSynchronize, stream);
            let _ = call!(hipStreamDestroy, stream);
        }
    }

    fn event() -> Result<sys::hipEvent_t, Fault> {
        let mut event = ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { call!(hipEventCreateWithFlags, &raw mut event, sys::hipEventDisableTiming)? };
        Ok(event)
    }

    unsafe fn end_event(event: sys::hipEvent_t) {
        // SAFETY: see the trait.
        let _ = unsafe { call!(hipEventDestroy, event) };
    }

    unsafe fn record(event: sys::hipEvent_t, stream: sys::hipStream_t) -> Result<(), Fault> {
        // SAFETY: see the trait.
        unsafe { call!(hipEventRecord, event, stream) }
    }

    unsafe fn is_over(event: sys::hipEvent_t) -> Result<bool, Fault> {
        let query = sys::hipEventQuery as unsafe extern "C" fn(_) -> hipError_t;
        // SAFETY: see the trait.
        match unsafe { query.raw()(event) } {
            result if result == hipError_t::hipErrorNotReady as u32 => Ok(false),
            result => fault_of("hipEventQuery", result).map_or(Ok(true), Err),
        }
    }

    unsafe fn send(
        to: u64,
        from: *const c_void,
        bytes: usize,
        stream: sys::hipStream_t,
    ) -> Result<(), Fault> {
        // SAFETY: see the trait; it reads what it takes as mutable.
        unsafe { call!(hipMemcpyHtoDAsync, to as *mut c_void, from.cast_mut(), bytes, stream) }
    }

    unsafe fn fetch(to: *mut c_void, from: u64, bytes: usize, stream: sys::hipStream_t) -> Result<(), Fault> {
        // SAFETY: see the trait.
        unsafe { call!(hipMemcpyDtoHAsync, to, from as *mut c_void, bytes, stream) }
    }

    unsafe fn launch(
        kernel: Kernel,
        blocks: u32,
        parameters: &mut [*mut c_void],
        stream: sys::hipStream_t,
    ) -> Result<(), Fault> {
        let (function, parameters, one) = (kernel.function, parameters.as_mut_ptr(), 1 as c_uint);
        // SAFETY: see the trait; every kernel here has that many threads.
        unsafe {
            call!(
                hipModuleLaunchKernel,
                function,
                blocks,
                one,
                one,
                THREADS,
                one,
                one,
                0 as c_uint,
                stream,
                parameters,
                ptr::null_mut::<*mut c_void>()
            )
        }
    }
}
