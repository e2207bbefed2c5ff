//! A small reader and evaluator of SMT-LIB 2 scripts over bit vectors: `declare-const`, `define-sort` and
//! `define-fun`, and the operations that exported scripts use. It shares no code with what writes them.

use std::collections::HashMap;

use num_bigint::BigUint;

/// An S-expression.
#[derive(Clone, Debug)]
enum Tree {
    Atom(String),
    List(Vec<Tree>),
}

fn read(text: &str) -> Vec<Tree> {
    let mut stack: Vec<Vec<Tree>> = vec![Vec::new()];
    for line in text.lines() {
        let line = line.split(';').next().unwrap_or_default();
        let spaced = line.replace('(', " ( ").replace(')', " ) ");
        for word in spaced.split_whitespace() {
            match word {
                "(" => stack.push(Vec::new()),
                ")" => {
                    let list = stack.pop().expect("a list is open");
                    stack.last_mut().expect("no more are closed than opened").push(Tree::List(list));
                }
                atom => stack.last_mut().expect("there is a list").push(Tree::Atom(atom.to_string())),
            }
        }
    }
    assert_eq!(stack.len(), 1, "every list is closed");
    stack.remove(0)
}

impl Tree {
    fn atom(&self) -> &str {
        match self {
            Tree::Atom(text) => text,
            Tree::List(list) => panic!("a name is expected, not {list:?}"),
        }
    }

    fn list(&self) -> &[Tree] {
        match self {
            Tree::List(list) => list,
            Tree::Atom(atom) => panic!("a list is expected, not {atom}"),
        }
    }
}

/// An operation on earlier nodes.
#[derive(Clone, Debug)]
enum Operation {
    Variable(usize),
    Constant(BigUint),
    Apply(&'static str, Vec<usize>),
    /// Bits from that one on.
    Extract(u32, usize),
    /// Zeros or signs in front.
    Extend(bool, usize),
}

#[derive(Clone, Debug)]
struct Node {
    operation: Operation,
    /// Bits; 0 for a Bool, which is 0 or 1.
    width: u32,
}

/// What a name stands for.
#[derive(Clone, Debug)]
struct Function {
    parameters: Vec<String>,
    body: Tree,
}

/// A script, ready to be evaluated for many inputs.
pub struct Script {
    nodes: Vec<Node>,
    variables: Vec<String>,
    results: HashMap<String, usize>,
    functions: HashMap<String, Function>,
    sorts: HashMap<String, u32>,
}

const OPERATIONS: [&str; 23] = [
    "bvadd", "bvsub", "bvmul", "bvneg", "bvnot", "bvand", "bvor", "bvxor", "bvshl", "bvlshr", "concat", "=",
    "bvult", "bvule", "bvugt", "bvslt", "bvsle", "not", "and", "or", "xor", "ite", "=>",
];

impl Script {
    pub fn new(text: &str) -> Script {
        let mut script = Script {
            nodes: Vec::new(),
            variables: Vec::new(),
            results: HashMap::new(),
            functions: HashMap::new(),
            sorts: HashMap::new(),
        };
        for command in read(text) {
            let parts = command.list();
            match parts[0].atom() {
                "set-logic" => assert_eq!(parts[1].atom(), "QF_BV"),
                "define-sort" => {
                    let width = script.width(&parts[3]);
                    script.sorts.insert(parts[1].atom().to_string(), width);
                }
                "declare-const" => {
                    let name = parts[1].atom().to_string();
                    let width = script.width(&parts[2]);
                    let id = script.node(Operation::Variable(script.variables.len()), width);
                    script.variables.push(name.clone());
                    script.results.insert(name, id);
                }
                "define-fun" => {
                    let [_, name, parameters, sort, body] = parts else {
                        panic!("a definition has five parts")
                    };
                    let parameters: Vec<String> =
                        parameters.list().iter().map(|p| p.list()[0].atom().to_string()).collect();
                    let name = name.atom().to_string();
                    if parameters.is_empty() {
                        let id = script.build(body, &HashMap::new());
                        assert_eq!(script.nodes[id].width, script.width(sort), "{name} has its sort");
                        script.results.insert(name, id);
                    } else {
                        script.functions.insert(name, Function { parameters, body: body.clone() });
                    }
                }
                other => panic!("{other} is not expected in an export"),
            }
        }
        script
    }

    fn width(&self, sort: &Tree) -> u32 {
        match sort {
            Tree::Atom(name) => self.sorts[name],
            Tree::List(parts) => parts[2].atom().parse().expect("a width"),
        }
    }

    fn node(&mut self, operation: Operation, width: u32) -> usize {
        self.nodes.push(Node { operation, width });
        self.nodes.len() - 1
    }

    fn build(&mut self, term: &Tree, scope: &HashMap<String, usize>) -> usize {
        let parts = match term {
            Tree::Atom(name) => return self.name(name, scope),
            Tree::List(parts) => parts,
        };
        match &parts[0] {
            Tree::Atom(name) if name == "_" => {
                let digits = parts[1].atom().strip_prefix("bv").expect("a constant");
                let value = digits.parse().expect("a number");
                let width = parts[2].atom().parse().expect("a width");
                self.node(Operation::Constant(value), width)
            }
            Tree::Atom(name) if name == "let" => {
                let mut inner = scope.clone();
                for binding in parts[1].list() {
                    let [name, value] = binding.list() else { panic!("a binding has two parts") };
                    inner.insert(name.atom().to_string(), self.build(value, scope));
                }
                self.build(&parts[2], &inner)
            }
            Tree::Atom(name) => {
                let arguments: Vec<usize> = parts[1..].iter().map(|part| self.build(part, scope)).collect();
                if let Some(Function { parameters, body }) = self.functions.get(name).cloned() {
                    assert_eq!(parameters.len(), arguments.len(), "{name}");
                    let inner = parameters.into_iter().zip(arguments).collect();
                    return self.build(&body, &inner);
                }
                let known = OPERATIONS.iter().find(|known| *known == name);
                let operation = known.unwrap_or_else(|| panic!("{name} is known"));
                self.apply(operation, arguments)
            }
            Tree::List(indexed) => {
                let argument = self.build(&parts[1], scope);
                let number = |index: usize| indexed[index].atom().parse::<u32>().expect("a number");
                let old = self.nodes[argument].width;
                match indexed[1].atom() {
                    "extract" => {
                        let (high, low) = (number(2), number(3));
                        assert!(high < old && low <= high);
                        self.node(Operation::Extract(low, argument), high - low + 1)
                    }
                    "zero_extend" => self.node(Operation::Extend(false, argument), old + number(2)),
                    "sign_extend" => self.node(Operation::Extend(true, argument), old + number(2)),
                    other => panic!("{other} is not expected"),
                }
            }
        }
    }

    fn name(&mut self, name: &str, scope: &HashMap<String, usize>) -> usize {
        if let Some(&id) = scope.get(name).or_else(|| self.results.get(name)) {
            return id;
        }
        let literal = match name {
            "true" => Some((1u32, 0)),
            "false" => Some((0, 0)),
            _ => name
                .strip_prefix("#b")
                .map(|digits| (u32::from_str_radix(digits, 2).expect("binary"), digits.len() as u32)),
        };
        let (value, width) = literal.unwrap_or_else(|| panic!("{name} is not bound"));
        self.node(Operation::Constant(value.into()), width)
    }

    /// Checks the sorts of an application, which solvers would.
    fn apply(&mut self, operation: &'static str, arguments: Vec<usize>) -> usize {
        let widths: Vec<u32> = arguments.iter().map(|&id| self.nodes[id].width).collect();
        let alike = widths.windows(2).all(|two| two[0] == two[1]);
        let width = match operation {
            "concat" => widths.iter().sum(),
            "ite" => {
                assert!(widths[0] == 0 && widths[1] == widths[2], "ite of {widths:?}");
                widths[1]
            }
            "not" | "and" | "or" | "xor" | "=>" => {
                assert!(widths.iter().all(|&width| width == 0), "{operation} of {widths:?}");
                0
            }
            "=" | "bvult" | "bvule" | "bvugt" | "bvslt" | "bvsle" => {
                assert!(alike && widths[0] > 0, "{operation} of {widths:?}");
                0
            }
            _ => {
                assert!(alike && widths[0] > 0, "{operation} of {widths:?}");
                widths[0]
            }
        };
        self.node(Operation::Apply(operation, arguments), width)
    }

    /// The names of the variables, in order.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The value of a name for these values of the variables.
    pub fn value(&self, name: &str, inputs: &[u64]) -> u64 {
        let root = self.results[name];
        let mut values: Vec<Value> = Vec::with_capacity(root + 1);
        for node in &self.nodes[..=root] {
            let value = self.evaluate(node, &values, inputs);
            values.push(value);
        }
        match &values[root] {
            Value::Small(value) => u64::try_from(*value).expect("results have at most 64 bits"),
            Value::Large(value) => u64::try_from(value).expect("results have at most 64 bits"),
        }
    }

    fn evaluate(&self, node: &Node, values: &[Value], inputs: &[u64]) -> Value {
        let width = node.width;
        match &node.operation {
            Operation::Variable(index) => Value::Small(u128::from(inputs[*index]) & mask(width)),
            Operation::Constant(value) => Value::of(value.clone(), width),
            Operation::Extract(low, argument) => values[*argument].shifted_right(*low).low(width),
            Operation::Extend(signed, argument) => {
                let old = self.nodes[*argument].width;
                let value = &values[*argument];
                if *signed && value.bit(old - 1) {
                    let ones = (BigUint::from(1u32) << width) - (BigUint::from(1u32) << old);
                    Value::of(value.large() | ones, width)
                } else {
                    Value::of_width(value, width)
                }
            }
            Operation::Apply(operation, arguments) => {
                let argument = |index: usize| &values[arguments[index]];
                let old = self.nodes[arguments[0]].width;
                match *operation {
                    "ite" => argument(if argument(0).is_true() { 1 } else { 2 }).clone(),
                    "not" => Value::truth(!argument(0).is_true()),
                    "and" => Value::truth((0..arguments.len()).all(|index| argument(index).is_true())),
                    "or" => Value::truth((0..arguments.len()).any(|index| argument(index).is_true())),
                    "xor" => Value::truth(argument(0).is_true() != argument(1).is_true()),
                    "=>" => Value::truth(!argument(0).is_true() || argument(1).is_true()),
                    "=" => Value::truth(argument(0).large_eq(argument(1))),
                    "concat" => {
                        let low = self.nodes[arguments[1]].width;
                        assert_eq!(arguments.len(), 2, "concat takes two");
                        if width <= 128 {
                            Value::Small(argument(0).small() << low | argument(1).small())
                        } else {
                            Value::of((argument(0).large() << low) | argument(1).large(), width)
                        }
                    }
                    other if old <= 128 => small(other, arguments.len(), argument, old),
                    other => large(other, argument, old),
                }
            }
        }
    }
}

fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// A value of up to 128 bits, or more; what is not wide is never held as wide.
#[derive(Clone, Debug)]
enum Value {
    Small(u128),
    Large(BigUint),
}

impl Value {
    fn of(value: BigUint, width: u32) -> Value {
        match width {
            0..=128 => Value::Small(u128::try_from(value).expect("it has that width")),
            _ => Value::Large(value),
        }
    }

    fn of_width(value: &Value, width: u32) -> Value {
        match value {
            Value::Small(small) if width <= 128 => Value::Small(*small),
            _ => Value::of(value.large(), width),
        }
    }

    fn truth(value: bool) -> Value {
        Value::Small(value.into())
    }

    fn is_true(&self) -> bool {
        self.small() == 1
    }

    fn small(&self) -> u128 {
        match self {
            Value::Small(value) => *value,
            Value::Large(_) => panic!("a wide value where a narrow one is expected"),
        }
    }

    fn large(&self) -> BigUint {
        match self {
            Value::Small(value) => (*value).into(),
            Value::Large(value) => value.clone(),
        }
    }

    fn large_eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Small(x), Value::Small(y)) => x == y,
            _ => self.large() == other.large(),
        }
    }

    fn bit(&self, index: u32) -> bool {
        match self {
            Value::Small(value) => value >> index & 1 == 1,
            Value::Large(value) => value.bit(index.into()),
        }
    }

    fn shifted_right(&self, by: u32) -> Value {
        match self {
            Value::Small(value) => Value::Small(value >> by),
            Value::Large(value) => Value::Large(value >> by),
        }
    }

    fn low(&self, width: u32) -> Value {
        match self {
            Value::Small(value) => Value::Small(value & mask(width)),
            Value::Large(value) => Value::of(value & ((BigUint::from(1u32) << width) - 1u32), width),
        }
    }
}

fn small<'v>(operation: &str, count: usize, argument: impl Fn(usize) -> &'v Value, width: u32) -> Value {
    let x = argument(0).small();
    let all = mask(width);
    if count == 1 {
        return Value::Small(match operation {
            "bvneg" => x.wrapping_neg() & all,
            "bvnot" => !x & all,
            other => panic!("{other} takes two"),
        });
    }
    let y = argument(1).small();
    let sign = 1u128 << (width - 1);
    Value::Small(match operation {
        "bvadd" => x.wrapping_add(y) & all,
        "bvsub" => x.wrapping_sub(y) & all,
        "bvmul" => x.wrapping_mul(y) & all,
        "bvand" => x & y,
        "bvor" => x | y,
        "bvxor" => x ^ y,
        "bvshl" if y >= width.into() => 0,
        "bvshl" => x << y & all,
        "bvlshr" if y >= width.into() => 0,
        "bvlshr" => x >> y,
        "bvult" => (x < y).into(),
        "bvule" => (x <= y).into(),
        "bvugt" => (x > y).into(),
        // In two's complement, flipping the sign bit makes signed order unsigned order.
        "bvslt" => (x ^ sign < y ^ sign).into(),
        "bvsle" => (x ^ sign <= y ^ sign).into(),
        other => panic!("{other} is not expected"),
    })
}

fn large<'v>(operation: &str, argument: impl Fn(usize) -> &'v Value, width: u32) -> Value {
    let modulus = BigUint::from(1u32) << width;
    let x = argument(0).large();
    let y = || argument(1).large();
    let shift = || u64::try_from(y()).unwrap_or(u64::MAX).min(u64::from(width));
    let truth = |value: bool| Value::truth(value);
    let value = match operation {
        "bvneg" => (&modulus - x) % modulus,
        "bvadd" => (x + y()) % modulus,
        "bvsub" => (x + &modulus - y()) % modulus,
        "bvmul" => x * y() % modulus,
        "bvor" => x | y(),
        "bvshl" => (x << shift()) % modulus,
        "bvlshr" => x >> shift(),
        "bvult" => return truth(x < y()),
        other => panic!("{other} of {width} bits is not expected"),
    };
    Value::of(value, width)
}
