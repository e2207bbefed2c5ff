//! `exec:COMMAND`: any program that speaks the device protocol, version 1, on its standard input and
//! output.
//!
//! The program is not trusted to behave. A thread feeds its input and another drains its output,
//! because both pipes can fill up; whoever waits for them gives up when for a whole time limit no
//! byte has moved either way. The first fault is final: the program is killed, and every later run
//! repeats the same error.
//!
//! The protocol does not number replies, so a payload that is too long is noticed where it can be:
//! right behind it, before the next request, as garbage in the next reply, or at the latest by
//! [`finish`](Device::finish).

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::description::{self, Description};
use super::{Batch, Device, DeviceError, Fault, Identity, Instruction, Provenance, element};

/// Longest hello that is believed.
const HELLO_LIMIT: usize = 16 << 20;
/// Longest reply line that is believed.
const REPLY_LIMIT: usize = 64 << 10;
/// Payload of a request, unless a single problem takes more: larger batches are split, which bounds
/// the memory of a device that reads whole requests.
const PAYLOAD: usize = 4 << 20;
/// Bytes written at once. A sign of life is seen only when a piece is taken entirely, so pieces are
/// small enough for a slow link.
const PIECE: usize = 16 << 10;
/// How long a device may take to exit after bye, and how long a killed one may take to be gone.
const GRACE: Duration = Duration::from_secs(1);
/// How long a device that closed its output may take to exit, so that its status can be told: on a busy
/// machine an interpreter takes seconds.
const LAST_BREATH: Duration = Duration::from_secs(10);

/// An external program as a device.
pub struct Exec {
    identity: Identity,
    instructions: Vec<Instruction>,
    state: Mutex<State>,
}

enum State {
    Open(Session),
    Failed(DeviceError),
    Finished,
}

impl Exec {
    /// Starts the command, split into words as a shell does but without one, and asks for its
    /// instructions.
    ///
    /// `timeout` limits silence, not work: it runs anew whenever the device sends or takes bytes.
    /// When the device fails only the process itself is killed; processes that it started have to
    /// notice that their input ended.
    ///
    /// # Errors
    /// If the command cannot be started, or does not introduce itself as the protocol asks.
    pub fn start(command: &str, timeout: Duration) -> Result<Exec, DeviceError> {
        let device = format!("exec:{command}");
        let introduced = Session::start(command, timeout).and_then(|mut session| {
            let hello = session.hello().inspect_err(|_| session.kill())?;
            Ok((session, hello))
        });
        match introduced {
            Ok((session, (description, instructions))) => Ok(Exec {
                identity: Identity {
                    name: device,
                    description,
                    properties: vec![("device protocol".into(), "1".into())],
                    provenance: Provenance::Measured,
                    absent: Vec::new(),
                },
                instructions,
                state: Mutex::new(State::Open(session)),
            }),
            Err(fault) => Err(DeviceError { device, fault }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while talking to the device")
    }

    /// Uses the session if it is open, and ends it at the first fault.
    fn talk<T>(
        &self,
        state: &mut State,
        exchange: impl FnOnce(&mut Session) -> Result<T, Fault>,
    ) -> Result<T, DeviceError> {
        let error = |fault| DeviceError { device: self.identity.name.clone(), fault };
        let session = match state {
            State::Open(session) => session,
            State::Failed(error) => return Err(error.clone()),
            State::Finished => return Err(error(Fault::Refused("its session is finished".into()))),
        };
        let answer = exchange(session).inspect_err(|_| session.kill());
        answer.map_err(|fault| {
            let error = error(fault);
            *state = State::Failed(error.clone());
            error
        })
    }
}

impl Device for Exec {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// # Panics
    /// If the batch does not [fit](Batch::fits) the instruction.
    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        assert!(batch.fits(instruction), "the batch is not one for `{}`", instruction.name);
        self.talk(&mut self.state(), |session| session.run(instruction, batch))
    }

    /// Says bye, waits for the device to exit, and makes sure that it had nothing more to say.
    fn finish(&self) -> Result<(), DeviceError> {
        let mut state = self.state();
        if !matches!(*state, State::Finished) {
            self.talk(&mut state, Session::finish)?;
            *state = State::Finished;
        }
        Ok(())
    }
}

/// What the threads at the pipes report.
enum Event {
    /// The device sent these bytes.
    Sent(Vec<u8>),
    /// The device's output ended.
    OutputEnded,
    /// That many bytes went into the pipe to the device.
    Taken(usize),
    /// The device closed its input.
    InputClosed,
}

/// A running device and the bytes under way.
struct Session {
    process: Child,
    /// Where requests go; `None` once its input is to end.
    requests: Option<Sender<Vec<u8>>>,
    events: Receiver<Event>,
    timeout: Duration,
    /// Bytes received and not yet used.
    unread: Vec<u8>,
    /// Bytes of requests that have not been taken.
    untaken: usize,
    input_closed: bool,
    output_ended: bool,
    /// What the last complete reply answered.
    previous: Option<String>,
}

#[derive(Serialize)]
struct RunRequest<'a> {
    op: &'static str,
    instruction: &'a str,
    count: usize,
}

#[derive(Deserialize)]
struct RunReply {
    ok: Option<bool>,
    error: Option<Value>,
}

impl Session {
    fn start(command: &str, timeout: Duration) -> Result<Session, Fault> {
        let Some(words) = shlex::split(command) else {
            return Err(Fault::Start("a quote or an escape in the command is not closed".into()));
        };
        let Some((program, arguments)) = words.split_first() else {
            return Err(Fault::Start("no command is given".into()));
        };
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => Fault::Start(format!("no such command: `{program}`")),
                _ => Fault::Start(format!("`{program}`: {error}")),
            })?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            unreachable!("both were asked to be pipes");
        };
        // Bounded, so that a device that never stops talking waits instead of filling the memory.
        let (events, received) = mpsc::sync_channel(16);
        let (requests, queued) = mpsc::channel();
        let session = Session {
            process,
            requests: Some(requests),
            events: received,
            timeout,
            unread: Vec::new(),
            untaken: 0,
            input_closed: false,
            output_ended: false,
            previous: None,
        };
        let reports = events.clone();
        // Neither thread is joined: a grandchild may hold a pipe open for ever.
        let input = thread::Builder::new().name("device input".into());
        let output = thread::Builder::new().name("device output".into());
        input
            .spawn(move || feed(stdin, &queued, &reports))
            .and_then(|_| output.spawn(move || drain(stdout, &events)))
            .map_err(|error| Fault::Start(format!("no thread to talk to it: {error}")))?;
        Ok(session)
    }

    /// Asks who the device is and what it offers.
    fn hello(&mut self) -> Result<(String, Vec<Instruction>), Fault> {
        let line = self.ask(b"{\"mmaprobe\":1,\"op\":\"hello\"}\n".to_vec(), "hello", HELLO_LIMIT)?;
        let hello: Value = self.parse(&line, "hello")?;
        // First of all: another version may have other fields.
        match (hello.get("protocol"), hello.get("error")) {
            (Some(version), _) if version.as_u64() == Some(1) => {}
            (Some(version), _) => {
                return Err(Fault::Version { found: excerpt(version.to_string().as_bytes()) });
            }
            (None, Some(error)) => return Err(reported("hello", error)),
            (None, None) => return Err(Fault::Description("its hello lacks `protocol`".into())),
        }
        let introduction = introduction(&hello).map_err(Fault::Description)?;
        self.settle("hello")?;
        Ok(introduction)
    }

    fn run(&mut self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, Fault> {
        let bytes = instruction.bytes();
        let each = [bytes.a, bytes.b, bytes.c, bytes.sa, bytes.sb];
        let at_once = (PAYLOAD / each.iter().sum::<usize>().max(bytes.d)).max(1);
        let mut answer = Vec::with_capacity(batch.count * bytes.d);
        for first in (0..batch.count).step_by(at_once) {
            let count = at_once.min(batch.count - first);
            let problems = match batch.count {
                1 => "1 problem".to_owned(),
                all if all == count => format!("{all} problems"),
                all => format!("problems {first} to {} of {all}", first + count - 1),
            };
            let during = format!("run of `{}`, {problems}", instruction.name);
            let header = RunRequest { op: "run", instruction: &instruction.name, count };
            let mut request = serde_json::to_vec(&header).expect("strings and numbers have a JSON form");
            request.push(b'\n');
            for (array, each) in batch.arrays().into_iter().zip(each) {
                request.extend_from_slice(&array[first * each..][..count * each]);
            }
            let line = self.ask(request, &during, REPLY_LIMIT)?;
            match self.parse(&line, &during)? {
                RunReply { ok: Some(true), error: None } => {}
                RunReply { ok: None | Some(false), error: Some(error) } => {
                    return Err(reported(&during, &error));
                }
                _ => {
                    let problem = format!("its reply says neither ok nor error: \"{}\"", excerpt(&line));
                    return Err(Fault::Reply { during, problem });
                }
            }
            let d = self.payload(count * bytes.d, &during)?;
            self.settle(&during)?;
            check_elements(instruction, &d).map_err(|problem| Fault::Reply { during, problem })?;
            answer.extend_from_slice(&d);
        }
        Ok(answer)
    }

    fn finish(&mut self) -> Result<(), Fault> {
        let during = "bye, waiting for it to end";
        self.nothing_left()?;
        self.bye();
        while !self.output_ended {
            self.wait(|_| during.into())?;
            self.nothing_left()?;
        }
        match self.exit_within(self.timeout) {
            Some(_) => Ok(()),
            None => Err(Fault::TimedOut { during: during.into(), limit: self.timeout }),
        }
    }

    /// Sends a request and returns the first line of the reply, without its end.
    fn ask(&mut self, request: Vec<u8>, during: &str, limit: usize) -> Result<Vec<u8>, Fault> {
        self.nothing_left()?;
        self.send(request);
        let mut searched = 0;
        loop {
            let end = self.unread[searched..].iter().position(|&byte| byte == b'\n');
            let length = end.map_or(self.unread.len(), |end| searched + end);
            if length > limit {
                let problem =
                    format!("its reply has no line end within {limit} bytes: \"{}\"", excerpt(&self.unread));
                return Err(Fault::Reply { during: during.into(), problem });
            }
            if end.is_some() {
                let mut line = self.take(length + 1);
                line.pop();
                return Ok(line);
            }
            searched = length;
            self.wait_for_output(|_| match length {
                0 => format!("{during}, waiting for its reply"),
                _ => format!("{during}, in the middle of its reply, after {length} bytes"),
            })?;
        }
    }

    /// Reads the bytes that follow a reply.
    fn payload(&mut self, length: usize, during: &str) -> Result<Vec<u8>, Fault> {
        while self.unread.len() < length {
            self.wait_for_output(|session| {
                format!("{during}, after {} of {length} bytes of D", session.unread.len())
            })?;
        }
        Ok(self.take(length))
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.unread.split_off(length);
        std::mem::replace(&mut self.unread, rest)
    }

    /// Ends an exchange: the device must have read the request, and sent no more than its reply.
    fn settle(&mut self, during: &str) -> Result<(), Fault> {
        self.previous = Some(during.into());
        while self.untaken > 0 && !self.input_closed {
            self.wait(|_| format!("{during}, its reply complete"))?;
        }
        if self.untaken > 0 {
            let problem = "it replied and closed its input without reading the whole request".into();
            return Err(Fault::Reply { during: during.into(), problem });
        }
        self.nothing_left()
    }

    /// Makes sure that nothing has arrived behind the last reply.
    fn nothing_left(&mut self) -> Result<(), Fault> {
        while self.unread.is_empty()
            && let Ok(event) = self.events.try_recv()
        {
            self.note(event);
        }
        if self.unread.is_empty() {
            return Ok(());
        }
        let problem = format!(
            "its reply is too long: {} or more bytes are left over, \"{}\"",
            self.unread.len(),
            excerpt(&self.unread)
        );
        Err(Fault::Reply { during: self.previous.clone().unwrap_or_else(|| "before hello".into()), problem })
    }

    /// Parses a reply, which must be a JSON object.
    fn parse<T: DeserializeOwned>(&self, line: &[u8], during: &str) -> Result<T, Fault> {
        let problem = match std::str::from_utf8(line) {
            Err(_) => "is not UTF-8".to_owned(),
            // White space in front, which JSON allows, is more likely the end of a long payload.
            Ok(text) if !text.starts_with('{') => "is no JSON object".to_owned(),
            Ok(text) => match serde_json::from_str(text) {
                Ok(reply) => return Ok(reply),
                Err(error) => format!("is not the JSON it should be ({error})"),
            },
        };
        let before = match &self.previous {
            Some(previous) => format!("; perhaps its reply before, to the {previous}, was too long"),
            None => String::new(),
        };
        let problem = format!("its reply {problem}: \"{}\"{before}", excerpt(line));
        Err(Fault::Reply { during: during.into(), problem })
    }

    fn send(&mut self, request: Vec<u8>) {
        self.untaken += request.len();
        if let Some(requests) = &self.requests
            && requests.send(request).is_err()
        {
            self.input_closed = true;
        }
    }

    /// Tells the device to end, in both ways that there are.
    fn bye(&mut self) {
        self.send(b"{\"op\":\"bye\"}\n".to_vec());
        self.requests = None;
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Sent(bytes) => self.unread.extend_from_slice(&bytes),
            Event::OutputEnded => self.output_ended = true,
            Event::Taken(count) => self.untaken -= count,
            Event::InputClosed => self.input_closed = true,
        }
    }

    /// Waits until something happens.
    fn wait(&mut self, during: impl Fn(&Session) -> String) -> Result<(), Fault> {
        match self.events.recv_timeout(self.timeout) {
            Ok(event) => {
                self.note(event);
                Ok(())
            }
            // Both threads have ended and have said so.
            Err(RecvTimeoutError::Disconnected) => {
                (self.output_ended, self.input_closed) = (true, true);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => {
                let during = match self.untaken {
                    0 => during(self),
                    untaken => format!("{}, with {untaken} bytes of the request not read", during(self)),
                };
                Err(match self.process.try_wait() {
                    Ok(Some(status)) => Fault::Died {
                        during,
                        status: format!("{status}, though a process it started keeps its output open"),
                    },
                    _ => Fault::TimedOut { during, limit: self.timeout },
                })
            }
        }
    }

    /// Waits until something happens; the end of the device's output is a fault.
    fn wait_for_output(&mut self, during: impl Fn(&Session) -> String) -> Result<(), Fault> {
        if !self.output_ended {
            return self.wait(during);
        }
        let status = match self.exit_within(LAST_BREATH.min(self.timeout)) {
            Some(status) => status.to_string(),
            None => "it closed its output, but kept running".into(),
        };
        Err(Fault::Died { during: during(self), status })
    }

    /// The exit status, if the process exits in time.
    fn exit_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(None) if start.elapsed() < limit => thread::sleep(Duration::from_millis(2)),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    /// Kills and reaps the process. Reaping has a limit: a process that is stuck in the kernel does
    /// not die.
    fn kill(&mut self) {
        self.requests = None;
        // Fails only if it has exited already.
        let _ = self.process.kill();
        self.exit_within(GRACE);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.requests.is_some() {
            self.bye();
            self.exit_within(GRACE.min(self.timeout));
        }
        self.kill();
    }
}

/// Passes on what the device sends, until it ends or nobody listens.
fn drain(mut output: ChildStdout, events: &SyncSender<Event>) {
    let mut piece = vec![0; 4 * PIECE];
    loop {
        let event = match output.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => Event::OutputEnded,
            Ok(length) => Event::Sent(piece[..length].to_vec()),
        };
        let ended = matches!(event, Event::OutputEnded);
        if events.send(event).is_err() || ended {
            return;
        }
    }
}

/// Writes requests to the device, until there are no more or it reads no more.
fn feed(mut input: ChildStdin, requests: &Receiver<Vec<u8>>, events: &SyncSender<Event>) {
    for request in requests {
        for piece in request.chunks(PIECE) {
            let event = match input.write_all(piece) {
                Ok(()) => Event::Taken(piece.len()),
                Err(_) => Event::InputClosed,
            };
            let closed = matches!(event, Event::InputClosed);
            if events.send(event).is_err() || closed {
                return;
            }
        }
    }
}

/// The name and the instructions in a hello, or what is wrong with them.
fn introduction(hello: &Value) -> Result<(String, Vec<Instruction>), String> {
    let name = hello.get("name").and_then(Value::as_str).ok_or("its hello lacks `name`, a string")?;
    description::check_text("its name", name)?;
    let descriptions = hello.get("instructions").and_then(Value::as_array);
    let mut instructions = Vec::new();
    for (index, description) in
        descriptions.ok_or("its hello lacks `instructions`, an array")?.iter().enumerate()
    {
        let instruction = Description::deserialize(description)
            .map_err(|error| format!("{}: {error}", excerpt(description.to_string().as_bytes())))
            .and_then(Description::instruction)
            .map_err(|problem| format!("instruction {}, {problem}", index + 1))?;
        instructions.push(instruction);
    }
    description::check_names(&instructions)?;
    Ok((name.to_owned(), instructions))
}

/// Checks that no element of D has bits outside its format.
fn check_elements(instruction: &Instruction, d: &[u8]) -> Result<(), String> {
    let format = &instruction.d;
    let width = format.bits() + format.ignored_low_bits;
    if width as usize == 8 * format.bytes {
        return Ok(());
    }
    let elements = d.len() / format.bytes;
    let Some(index) = (0..elements).find(|&index| element(d, format, index) >> width != 0) else {
        return Ok(());
    };
    let (problem, place) = (index / (instruction.m * instruction.n), index % (instruction.m * instruction.n));
    Err(format!(
        "{:#04x} at row {}, column {} of D, problem {problem} of the request, has bits outside {format}",
        element(d, format, index),
        place / instruction.n,
        place % instruction.n,
    ))
}

fn reported(during: &str, error: &Value) -> Fault {
    let message = match error {
        Value::String(message) => message.clone(),
        other => other.to_string(),
    };
    // For people, on a terminal: nothing for it to obey, and no more than they read.
    let message = message.chars().take(1000).map(|c| if c.is_control() { ' ' } else { c }).collect();
    Fault::Reported { during: during.into(), message }
}

/// The start of what a device sent, fit to print.
fn excerpt(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(60)];
    let more = if start.len() < bytes.len() { "…" } else { "" };
    format!("{}{more}", start.escape_ascii())
}
