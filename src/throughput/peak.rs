//! What units could do, as their makers say it.

use mmaprobe_kernels::cpu::{Processor, Unit};
use serde::Serialize;

/// The most that a core can execute of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// Executions a cycle.
    pub per_cycle: f64,
    /// Why, and who says so.
    pub because: &'static str,
}

/// Intel's processors by display family and model: Sapphire Rapids, Emerald Rapids, Granite Rapids.
const WITH_TWO_UNITS: [(&str, &str); 4] = [("6", "143"), ("6", "207"), ("6", "173"), ("6", "174")];

const FMA: &str = "two 512-bit FMA units a core (Intel ARK, \"# of AVX-512 FMA Units\"), each one \
                   instruction a cycle";
const BF16: &str = "two 512-bit FMA units a core (Intel ARK, \"# of AVX-512 FMA Units\"), each 16 \
                    multiply-adds in fp32 a cycle, of which an execution takes 32";
const TILE: &str = "1024 operations on bf16 or fp16 a cycle and core, which is one 16×16×32 product in 16 \
                    cycles (Intel 64 and IA-32 Architectures Optimization Reference Manual, AMX)";

impl Peak {
    /// That of an instruction; `None` for processors of which nothing is known here.
    pub fn of(processor: &Processor, unit: &Unit) -> Option<Peak> {
        let property = |name: &str| {
            let property = processor.properties.iter().find(|(key, _)| *key == name);
            property.map_or("", |(_, value)| value.as_str())
        };
        let model = (property("family"), property("model"));
        if property("vendor") != "GenuineIntel" || !WITH_TWO_UNITS.contains(&model) {
            return None;
        }
        match (unit.shape().name, unit.registers()) {
            ("vfmadd231ps" | "vfmadd231pd" | "vfmadd231ph", "zmm") => {
                Some(Peak { per_cycle: 2.0, because: FMA })
            }
            ("vdpbf16ps", "zmm") => Some(Peak { per_cycle: 1.0, because: BF16 }),
            ("tdpbf16ps" | "tdpfp16ps", _) => Some(Peak { per_cycle: 1.0 / 16.0, because: TILE }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_of_known_processors_alone() {
        let here = Processor::detect();
        let [known, unknown] = ["207", "1"].map(|model| Processor {
            properties: [("vendor", "GenuineIntel"), ("family", "6"), ("model", model)]
                .map(|(name, value)| (name, value.to_string()))
                .to_vec(),
            ..here.clone()
        });
        for unit in &here.units {
            assert_eq!(Peak::of(&unknown, unit), None);
            let Some(peak) = Peak::of(&known, unit) else { continue };
            // 64 operations a cycle on fp32 and 128 on fp16: the arithmetic behind each source.
            let per_cycle = match unit.shape().name {
                "vfmadd231pd" => 32.0,
                "vfmadd231ph" => 128.0,
                "tdpbf16ps" | "tdpfp16ps" => 1024.0,
                _ => 64.0,
            };
            assert_eq!(peak.per_cycle * unit.operations() as f64, per_cycle, "{}", unit.shape().name);
        }
    }
}
