//! The queries of Valpey et al.'s (2025) Table 4, answered by structured search and by the solvers that are
//! on the PATH, as a Markdown table beside the published times.
//!
//!     cargo run --release --example table4 -- 60
//!
//! The number is how many seconds a solver may take for a question. See [`mmaprobe::smt::table4`].

use std::error::Error;
use std::time::Duration;

use mmaprobe::smt::query::{By, Plan, QueryError};
use mmaprobe::smt::solver::Program;
use mmaprobe::smt::table4::{Answered, Query, answer, queries};

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(60), |text| text.parse())?;
    let plan = |by, solver| Plan { solver, limit: Duration::from_secs(seconds), by };
    let solvers: Vec<Program> = Program::ALL.into_iter().filter(|program| program.path().is_some()).collect();
    let mut header = vec!["query".to_string(), "paper: Z3 4.8.9".into(), "paper: cvc5 1.0.2".into()];
    header.push("structured search".into());
    header.extend(solvers.iter().map(|solver| solver.version().unwrap_or_else(|| solver.to_string())));
    println!("| {} |", header.join(" | "));
    println!("|{}", " --- |".repeat(header.len()));
    for query in queries()? {
        let mut row = vec![query.name.to_string()];
        row.extend(query.published.map(String::from));
        row.push(shown(shortest(&query, &plan(By::Reasoning, None))?));
        for &solver in &solvers {
            row.push(shown(answer(&query, &plan(By::Solver, Some(solver)))?));
        }
        println!("| {} |", row.join(" | "));
    }
    Ok(())
}

/// The shortest of several times, since another program's turn is longer than most of these.
fn shortest(query: &Query, plan: &Plan) -> Result<Answered, QueryError> {
    const TIMES: usize = 5;
    let mut best = answer(query, plan)?;
    for _ in 1..TIMES {
        let again = answer(query, plan)?;
        if let (Answered::In(seconds), Answered::In(shortest)) = (&again, &best)
            && seconds < shortest
        {
            best = again;
        }
    }
    Ok(best)
}

fn shown(answered: Answered) -> String {
    match answered {
        Answered::In(seconds) => format!("{seconds:.4}"),
        Answered::Not(why) => why,
    }
}
