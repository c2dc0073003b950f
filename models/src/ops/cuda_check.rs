//! The GPU kernels, compiled for the CPU and compared with the same operations in Rust. They are C,
//! and here a single thread does all the work.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use candle_core::{DType, Device, Tensor};
use switchyard_kernels::{Padding, Window2d};

use super::taps::taps;
use super::testing::values;

/// Reads the arguments of a call as binary values, calls the kernel and writes its result. `T` is
/// the type, `S` its suffix.
const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define JOIN(a, b) a##b
#define CALL(a, b) JOIN(a, b)
static T *take(unsigned long long count) {
    T *values = malloc((count + 1) * sizeof(T));
    if (fread(values, sizeof(T), count, stdin) != count) exit(3);
    return values;
}
int main(void) {
    int a[16];
    if (fread(a, sizeof(int), 16, stdin) != 16) return 2;
    unsigned long long in = a[1], out = a[2];
    T *from = take(in);
    if (a[0] == 0) {
        T *rows = malloc(out * sizeof(T));
        CALL(unfold_, S)(from, rows, out, a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                         a[12], a[13]);
        fwrite(rows, sizeof(T), out, stdout);
    } else {
        T *bias = take(a[3]);
        T *onto = take(a[4] ? out : 0);
        CALL(finish_, S)(from, bias, onto, out, a[3], a[4], a[5]);
        fwrite(from, sizeof(T), out, stdout);
    }
    return 0;
}
"#;

/// A program of the kernels for one type of values; `None` if the compiler has no half floats.
fn program(folder: &Path, dtype: DType) -> Option<std::path::PathBuf> {
    let (c_type, suffix) = match dtype {
        DType::F16 => ("half_bits", "f16"),
        _ => ("float", "f32"),
    };
    let source = folder.join(format!("{suffix}.c"));
    let program = folder.join(suffix);
    let text = concat!(include_str!("cuda/kernels.cu"), "\n");
    std::fs::write(&source, format!("{text}{MAIN}")).unwrap();
    let mut compile = Command::new("cc");
    compile.args([
        "-O1",
        &format!("-DT={c_type}"),
        &format!("-DS={suffix}"),
        "-o",
    ]);
    let compiled = compile
        .arg(&program)
        .arg(&source)
        .stderr(Stdio::null())
        .status();
    match compiled {
        Ok(status) if status.success() => Some(program),
        // Old compilers have no halves.
        Ok(_) if dtype == DType::F16 => None,
        other => panic!("the kernels do not compile: {other:?}"),
    }
}

fn bytes(tensor: &Tensor) -> Vec<u8> {
    let flat = tensor.flatten_all().unwrap();
    match tensor.dtype() {
        DType::F16 => {
            // By way of f32: half floats widen exactly.
            let values = flat.to_dtype(DType::F32).unwrap().to_vec1::<f32>().unwrap();
            values
                .iter()
                .flat_map(|value| half_bits(*value).to_le_bytes())
                .collect()
        }
        _ => {
            let values = flat.to_vec1::<f32>().unwrap();
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        }
    }
}

/// Bits of a value that half precision represents as a normal value or 0.
fn half_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    if value == 0.0 {
        return sign;
    }
    let exponent = ((bits >> 23) & 0xff) as i32 - 127 + 15;
    assert!((1..31).contains(&exponent), "{value}");
    sign | ((exponent as u16) << 10) | ((bits >> 13) & 0x3ff) as u16
}

fn run(program: &Path, call: &[i32], inputs: &[&Tensor], dtype: DType) -> Tensor {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut words = [0i32; 16];
    words[..call.len()].copy_from_slice(call);
    let mut input: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    inputs.iter().for_each(|tensor| input.extend(bytes(tensor)));
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let count = output.stdout.len() / dtype.size_in_bytes();
    Tensor::from_raw_buffer(&output.stdout, dtype, &[count], &Device::Cpu).unwrap()
}

fn assert_same(ours: &Tensor, theirs: &Tensor, bound: f32, name: &str) {
    let values = |tensor: &Tensor| values(&tensor.to_dtype(DType::F32).unwrap());
    let (ours, theirs) = (values(ours), values(theirs));
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert!((a - b).abs() <= bound, "{name}, value {i}: {a} {b}");
    }
}

/// Multiples of 1/8 from -1 to 1: exact in half precision, and so are sums of three.
fn eighths(shape: &[usize], seed: usize) -> Tensor {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|i| ((i * 7 + i / 5 + seed * 3) % 17) as f32 / 8.0 - 1.0);
    Tensor::from_vec(values.collect::<Vec<f32>>(), shape, &Device::Cpu).unwrap()
}

#[test]
fn windows_become_the_rows_of_the_composed_operations() {
    let folder = tempfile::tempdir().unwrap();
    let odd = Window2d {
        kernel: [2, 3],
        stride: [3, 1],
        padding: Padding {
            top: 1,
            left: 0,
            bottom: 2,
            right: 1,
        },
    };
    let windows = [
        Window2d::centred(3, 1),
        Window2d::centred(3, 2),
        Window2d::centred(1, 2),
        Window2d::centred(7, 2),
        odd,
    ];
    for dtype in [DType::F32, DType::F16] {
        let Some(program) = program(folder.path(), dtype) else {
            continue;
        };
        for window in windows {
            let shape = [2, 9, 8, 3];
            let x = eighths(&shape, 1);
            let [lines, columns] = window.output(9, 8).unwrap();
            let theirs = Tensor::cat(&taps(window, &x).unwrap(), 3).unwrap();
            let Window2d {
                kernel,
                stride,
                padding,
            } = window;
            let sizes = [
                0,
                x.elem_count(),
                theirs.elem_count(),
                9,
                8,
                3,
                lines,
                columns,
                kernel[0],
                kernel[1],
                stride[0],
                stride[1],
                padding.top,
                padding.left,
            ];
            let call = sizes.map(|size| size as i32);
            let x = x.to_dtype(dtype).unwrap();
            let ours = run(&program, &call, &[&x], dtype);
            assert_same(&ours, &theirs, 0.0, &format!("{window:?} {dtype:?}"));
        }
    }
}

#[test]
fn bias_residual_and_relu_are_those_of_the_composed_operations() {
    let folder = tempfile::tempdir().unwrap();
    let (product, bias, onto) = (eighths(&[5, 6], 1), eighths(&[6], 2), eighths(&[5, 6], 4));
    for dtype in [DType::F32, DType::F16] {
        let Some(program) = program(folder.path(), dtype) else {
            continue;
        };
        for (has_onto, relu) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut theirs = product.broadcast_add(&bias).unwrap();
            if has_onto {
                theirs = (theirs + &onto).unwrap();
            }
            if relu {
                theirs = theirs.relu().unwrap();
            }
            let call = [1, 30, 30, 6, i32::from(has_onto), i32::from(relu)];
            let narrow = [&product, &bias, &onto].map(|t| t.to_dtype(dtype).unwrap());
            let inputs: Vec<&Tensor> = narrow.iter().take(2 + usize::from(has_onto)).collect();
            let ours = run(&program, &call, &inputs, dtype);
            assert_same(&ours, &theirs, 0.0, &format!("{has_onto} {relu} {dtype:?}"));
        }
    }
}
