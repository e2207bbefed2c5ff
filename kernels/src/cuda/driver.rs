//! NVIDIA's driver: which GPUs there are, and how kernels get onto them.
//!
//! The driver is loaded when it is first needed, and everything here works without one as far as it
//! can: [`gpus`] then says that there is none.

use std::ffi::{CString, c_int, c_void};
use std::ptr;

use cudarc::driver::sys::{self, CUdevice_attribute, CUjit_option, CUresult};

use super::{ENTRY, Program, THREADS};
use crate::fault::Fault;
use crate::stream::Runtime;

/// What is said where the driver is not there.
const NO_DRIVER: &str = "there is no NVIDIA driver: libcuda.so cannot be loaded. Install the driver of the GPU \
                         (CUDA is not needed), or run where there is one";

/// What is said where the driver sees no GPU, and why if it says.
fn no_gpu(why: &str) -> Fault {
    Fault::NoGpu(format!(
        "NVIDIA's driver sees no GPU{why}. Is one attached, and visible (CUDA_VISIBLE_DEVICES)?"
    ))
}

/// What a result of a driver's function means; `None` for success.
pub fn fault_of(call: &'static str, result: CUresult) -> Option<Fault> {
    let code = format!("{result:?}");
    Some(match result {
        CUresult::CUDA_SUCCESS => return None,
        CUresult::CUDA_ERROR_NO_DEVICE => no_gpu(""),
        CUresult::CUDA_ERROR_STUB_LIBRARY
        | CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
        | CUresult::CUDA_ERROR_SYSTEM_NOT_READY
        | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
        | CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => no_gpu(&format!(" ({code})")),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Fault::OutOfMemory(0),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
        | CUresult::CUDA_ERROR_LAUNCH_FAILED
        | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
        | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUresult::CUDA_ERROR_INVALID_PC
        | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
        | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
        | CUresult::CUDA_ERROR_ASSERT => Fault::Launch(code),
        _ => Fault::Other { call, code },
    })
}

/// Turns a result of a driver's function into a fault.
fn check(call: &'static str, result: CUresult) -> Result<(), Fault> {
    fault_of(call, result).map_or(Ok(()), Err)
}

/// A GPU that the driver sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its number.
    pub ordinal: usize,
    /// Its marketing name: `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Its compute capability.
    pub capability: (u32, u32),
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// Its memory in bytes.
    pub memory: usize,
    /// The version of CUDA that the driver supports: 13000 for 13.0.
    pub cuda: u32,
}

impl Gpu {
    /// The ISA target without suffix: `sm_90`.
    pub fn target(&self) -> String {
        format!("sm_{}{}", self.capability.0, self.capability.1)
    }

    /// The version of CUDA that the driver supports, in words.
    pub fn cuda_version(&self) -> String {
        format!("{}.{}", self.cuda / 1000, self.cuda % 1000 / 10)
    }
}

/// The driver's release, such as `580.159.04`, if the system tells.
pub fn release() -> Option<String> {
    let version = std::fs::read_to_string("/sys/module/nvidia/version").ok();
    version.map(|text| text.trim().to_string()).or_else(|| {
        // NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  …
        let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
        let first = text.lines().next()?;
        let is_release = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
        first.split_whitespace().find(is_release).map(str::to_string)
    })
}

/// Loads the driver.
fn initialise() -> Result<(), Fault> {
    // SAFETY: loading a library runs its initialisers; NVIDIA's is made for that.
    if !unsafe { sys::is_culib_present() } {
        return Err(Fault::Missing(NO_DRIVER));
    }
    // SAFETY: cuInit comes before everything else and may be called again.
    check("cuInit", unsafe { sys::cuInit(0) })
}

/// The GPUs that the driver sees.
///
/// # Errors
/// If there is no driver, or it sees none.
pub fn gpus() -> Result<Vec<Gpu>, Fault> {
    initialise()?;
    let (mut count, mut cuda) = (0, 0);
    // SAFETY: both write one integer.
    unsafe {
        check("cuDeviceGetCount", sys::cuDeviceGetCount(&raw mut count))?;
        check("cuDriverGetVersion", sys::cuDriverGetVersion(&raw mut cuda))?;
    }
    if count == 0 {
        return Err(no_gpu(""));
    }
    (0..count)
        .map(|ordinal| {
            let device = device(ordinal)?;
            let mut name = [0u8; 256];
            let mut memory = 0;
            // SAFETY: the name's buffer is as long as said, and the size is written to one integer.
            unsafe {
                let length = name.len() as c_int;
                check("cuDeviceGetName", sys::cuDeviceGetName(name.as_mut_ptr().cast(), length, device))?;
                check("cuDeviceTotalMem", sys::cuDeviceTotalMem_v2(&raw mut memory, device))?;
            }
            use CUdevice_attribute as Attribute;
            let major = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
            let minor = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
            let multiprocessors = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            Ok(Gpu {
                ordinal: ordinal as usize,
                name: String::from_utf8_lossy(&name[..length]).into_owned(),
                capability: (major, minor),
                multiprocessors,
                memory,
                cuda: cuda as u32,
            })
        })
        .collect()
}

fn device(ordinal: c_int) -> Result<sys::CUdevice, Fault> {
    let mut device = 0;
    // SAFETY: writes one handle.
    check("cuDeviceGet", unsafe { sys::cuDeviceGet(&raw mut device, ordinal) })?;
    Ok(device)
}

fn attribute(device: sys::CUdevice, attribute: CUdevice_attribute) -> Result<u32, Fault> {
    let mut value = 0;
    // SAFETY: writes one integer.
    let result = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) };
    check("cuDeviceGetAttribute", result)?;
    Ok(value as u32)
}

/// A GPU in use, with its context.
pub type Session = crate::stream::Session<Driver>;

/// The driver, with the context of a GPU.
#[derive(Debug)]
pub struct Driver {
    gpu: Gpu,
    device: sys::CUdevice,
    context: sys::CUcontext,
}

/// A kernel on a GPU.
///
/// It belongs to the [`Session`] that loaded it and lives as long as the process: there are few.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    function: sys::CUfunction,
}

// SAFETY: a handle that only a session, on its own context, makes use of.
unsafe impl Send for Kernel {}
// SAFETY: likewise.
unsafe impl Sync for Kernel {}

impl Runtime for Driver {
    type Gpu = Gpu;
    type Program = Program;
    type Kernel = Kernel;
    type Stream = sys::CUstream;
    type Event = sys::CUevent;

    fn gpus() -> Result<Vec<Gpu>, Fault> {
        gpus()
    }

    fn open(gpu: Gpu) -> Result<Driver, Fault> {
        let device = device(gpu.ordinal as c_int)?;
        let mut context = ptr::null_mut();
        // SAFETY: writes one handle, which is released when the session ends.
        let result = unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) };
        check("cuDevicePrimaryCtxRetain", result)?;
        Ok(Driver { gpu, device, context })
    }

    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn multiprocessors(&self) -> u32 {
        self.gpu.multiprocessors
    }

    fn enter(&self) -> Result<(), Fault> {
        // SAFETY: the context is retained.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    fn leave(&mut self) {
        // SAFETY: the context was retained once, and nothing of it is used any more.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }

    fn load(&self, program: &Program) -> Result<Kernel, Fault> {
        let source = CString::new(program.ptx.as_str()).expect("PTX text has no zero bytes");
        let mut log = vec![0u8; 4096];
        let mut options =
            [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
        let mut module = ptr::null_mut();
        // SAFETY: the source ends with a zero byte; there are two options, and the log is as long as
        // the second says.
        let result = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut module,
                source.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let length = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
        let log = String::from_utf8_lossy(&log[..length]).trim().to_string();
        compiled(result, &log, program, &self.gpu)?;
        let name = CString::new(ENTRY).expect("a name without zero bytes");
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded, and stays so.
        let result = unsafe { sys::cuModuleGetFunction(&raw mut function, module, name.as_ptr()) };
        check("cuModuleGetFunction", result)?;
        Ok(Kernel { function })
    }

    fn free_bytes() -> Result<usize, Fault> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two integers.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) })?;
        Ok(free)
    }

    fn allocate_host(bytes: usize) -> Result<*mut c_void, Fault> {
        let mut memory = ptr::null_mut();
        // SAFETY: writes one pointer.
        check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&raw mut memory, bytes, 0) })?;
        Ok(memory)
    }

    unsafe fn free_host(memory: *mut c_void) {
        // SAFETY: see the trait.
        let _ = unsafe { sys::cuMemFreeHost(memory) };
    }

    fn allocate(bytes: usize) -> Result<u64, Fault> {
        let mut memory = 0;
        // SAFETY: writes one address.
        check("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&raw mut memory, bytes) })?;
        Ok(memory)
    }

    unsafe fn free(memory: u64) {
        // SAFETY: see the trait.
        let _ = unsafe { sys::cuMemFree_v2(memory) };
    }

    fn stream() -> Result<sys::CUstream, Fault> {
        let mut stream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: writes one handle.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&raw mut stream, flags) })?;
        Ok(stream)
    }

    unsafe fn end_stream(stream: sys::CUstream) {
        // SAFETY: see the trait.
        unsafe {
            let _ = sys::cuStreamSynchronize(stream);
            let _ = sys::cuStreamDestroy_v2(stream);
        }
    }

    fn event() -> Result<sys::CUevent, Fault> {
        let mut event = ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: writes one handle.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut event, flags) })?;
        Ok(event)
    }

    unsafe fn end_event(event: sys::CUevent) {
        // SAFETY: see the trait.
        let _ = unsafe { sys::cuEventDestroy_v2(event) };
    }

    unsafe fn record(event: sys::CUevent, stream: sys::CUstream) -> Result<(), Fault> {
        // SAFETY: see the trait.
        check("cuEventRecord", unsafe { sys::cuEventRecord(event, stream) })
    }

    unsafe fn is_over(event: sys::CUevent) -> Result<bool, Fault> {
        // SAFETY: see the trait.
        match unsafe { sys::cuEventQuery(event) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("cuEventQuery", result).map(|()| true),
        }
    }

    unsafe fn send(to: u64, from: *const c_void, bytes: usize, stream: sys::CUstream) -> Result<(), Fault> {
        // SAFETY: see the trait.
        check("cuMemcpyHtoDAsync", unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, bytes, stream) })
    }

    unsafe fn fetch(to: *mut c_void, from: u64, bytes: usize, stream: sys::CUstream) -> Result<(), Fault> {
        // SAFETY: see the trait.
        check("cuMemcpyDtoHAsync", unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, bytes, stream) })
    }

    unsafe fn launch(
        kernel: Kernel,
        blocks: u32,
        parameters: &mut [*mut c_void],
        stream: sys::CUstream,
    ) -> Result<(), Fault> {
        let (function, parameters) = (kernel.function, parameters.as_mut_ptr());
        // SAFETY: see the trait; every kernel here has that many threads.
        let result = unsafe {
            sys::cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, ptr::null_mut())
        };
        check("cuLaunchKernel", result)
    }
}

/// What the driver's compiler said.
fn compiled(result: CUresult, log: &str, program: &Program, gpu: &Gpu) -> Result<(), Fault> {
    match result {
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            let version = program.ptx.lines().next().unwrap_or_default().replace(".version", "PTX");
            Err(Fault::OldDriver { needs: version, has: format!("CUDA {}", gpu.cuda_version()) })
        }
        CUresult::CUDA_ERROR_INVALID_PTX
        | CUresult::CUDA_ERROR_INVALID_IMAGE
        | CUresult::CUDA_ERROR_INVALID_SOURCE
        | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUresult::CUDA_ERROR_NOT_SUPPORTED
        | CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
        | CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED => {
            let first = log.lines().find(|line| !line.trim().is_empty());
            Err(Fault::Refused(first.map_or_else(|| format!("{result:?}"), |line| line.trim().to_string())))
        }
        _ => check("cuModuleLoadDataEx", result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Kind, Spec};
    use mmaprobe_model::format::{FP16, FP32};
    use std::time::Duration;

    fn program() -> Program {
        let spec = Spec {
            kind: Kind::Mma,
            m: 16,
            n: 8,
            k: 16,
            a: FP16,
            b: FP16,
            c: FP32,
            d: FP32,
            scale: None,
            blocks: 1,
        };
        Program::new(&spec, "sm_80").unwrap()
    }

    fn gpu() -> Gpu {
        Gpu {
            ordinal: 0,
            name: "NVIDIA A100".to_string(),
            capability: (8, 0),
            multiprocessors: 108,
            memory: 80 << 30,
            cuda: 12040,
        }
    }

    #[test]
    fn errors_of_the_driver_are_translated() {
        use CUresult as R;
        let of = |result| fault_of("cuSomething", result);
        assert_eq!(of(R::CUDA_SUCCESS), None);
        assert_eq!(of(R::CUDA_ERROR_NO_DEVICE), Some(no_gpu("")));
        assert!(
            matches!(of(R::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH), Some(Fault::NoGpu(why)) if why.contains("MISMATCH"))
        );
        assert_eq!(of(R::CUDA_ERROR_OUT_OF_MEMORY), Some(Fault::OutOfMemory(0)));
        for fault in
            [R::CUDA_ERROR_ILLEGAL_ADDRESS, R::CUDA_ERROR_LAUNCH_FAILED, R::CUDA_ERROR_ILLEGAL_INSTRUCTION]
        {
            let fault = of(fault).unwrap();
            assert!(matches!(fault, Fault::Launch(_)) && fault.is_final(), "{fault}");
        }
        let other = of(R::CUDA_ERROR_INVALID_VALUE).unwrap();
        assert_eq!(other.to_string(), "cuSomething failed: CUDA_ERROR_INVALID_VALUE");
        assert!(!other.is_final());
        assert!(Fault::TimedOut(Duration::from_secs(1)).is_final());
    }

    #[test]
    fn refusals_of_the_compiler_are_told_apart() {
        let of = |result, log| compiled(result, log, &program(), &gpu());
        assert_eq!(of(CUresult::CUDA_SUCCESS, ""), Ok(()));
        let old = of(CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "").unwrap_err();
        assert_eq!(old, Fault::OldDriver { needs: "PTX 7.0".to_string(), has: "CUDA 12.4".to_string() });
        let log =
            "\nptxas application ptx input, line 9; error   : Feature 'wgmma' not supported on sm_80\n…";
        let refused = of(CUresult::CUDA_ERROR_INVALID_PTX, log).unwrap_err();
        assert!(
            matches!(&refused, Fault::Refused(line) if line.ends_with("not supported on sm_80")),
            "{refused}"
        );
        let silent = of(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, "").unwrap_err();
        assert_eq!(silent, Fault::Refused("CUDA_ERROR_NO_BINARY_FOR_GPU".to_string()));
    }

    #[test]
    fn without_a_driver_that_is_said() {
        match gpus() {
            Err(fault @ Fault::Missing(_)) => {
                assert!(fault.to_string().contains("there is no NVIDIA driver"));
                assert_eq!(Session::open(0).unwrap_err(), fault);
            }
            other => eprintln!("NOT RUN: there is a driver here: {other:?}"),
        }
    }

    #[test]
    fn names_of_a_gpu() {
        assert_eq!((gpu().target().as_str(), gpu().cuda_version().as_str()), ("sm_80", "12.4"));
    }
}
