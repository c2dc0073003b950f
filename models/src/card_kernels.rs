//! The kernels for cards, compiled for the processor and held to the same in Rust: they are C, and a
//! thread that is the only one does everything.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use candle_core::{DType, Device, Tensor};

use crate::unfold2d::{Padding, Window2d};

/// Reads a call as numbers and writes what comes of it. `T` is the type, `S` its suffix.
const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define JOIN(a, b) a##b
#define CALL(a, b) JOIN(a, b)
static T *take(unsigned long long count) {
    T *numbers = malloc((count + 1) * sizeof(T));
    if (fread(numbers, sizeof(T), count, stdin) != count) exit(3);
    return numbers;
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

/// A program of the kernels for one type of numbers; none where there is no compiler that has halves.
fn program(folder: &Path, dtype: DType) -> Option<std::path::PathBuf> {
    let (number, suffix) = match dtype {
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
        &format!("-DT={number}"),
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
            // Through the bits of what f32 makes of them: halves widen exactly.
            let numbers = flat.to_dtype(DType::F32).unwrap().to_vec1::<f32>().unwrap();
            numbers
                .iter()
                .flat_map(|n| half_bits(*n).to_le_bytes())
                .collect()
        }
        _ => {
            let numbers = flat.to_vec1::<f32>().unwrap();
            numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect()
        }
    }
}

/// Bits of a number that half precision has, of normal size or 0.
fn half_bits(number: f32) -> u16 {
    let bits = number.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    if number == 0.0 {
        return sign;
    }
    let exponent = ((bits >> 23) & 0xff) as i32 - 127 + 15;
    assert!((1..31).contains(&exponent), "{number}");
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

fn assert_same(ours: &Tensor, theirs: &Tensor, bound: f32, what: &str) {
    let numbers = |tensor: &Tensor| {
        let flat = tensor.flatten_all().unwrap().to_dtype(DType::F32).unwrap();
        flat.to_vec1::<f32>().unwrap()
    };
    let (ours, theirs) = (numbers(ours), numbers(theirs));
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert!((a - b).abs() <= bound, "{what}, number {i}: {a} {b}");
    }
}

/// Multiples of 1/8 from -1 to 1: exact in half precision, and so are sums of three.
fn numbers(shape: &[usize], seed: usize) -> Tensor {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|i| ((i * 7 + i / 5 + seed * 3) % 17) as f32 / 8.0 - 1.0);
    Tensor::from_vec(values.collect::<Vec<f32>>(), shape, &Device::Cpu).unwrap()
}

#[test]
fn windows_become_rows_as_elsewhere() {
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
            let x = numbers(&shape, 1);
            let [lines, columns] = window.output(9, 8).unwrap();
            let theirs = Tensor::cat(&window.taps(&x).unwrap(), 3).unwrap();
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
fn what_follows_a_product_is_added_and_cut_off_as_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (product, bias, onto) = (numbers(&[5, 6], 1), numbers(&[6], 2), numbers(&[5, 6], 4));
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
