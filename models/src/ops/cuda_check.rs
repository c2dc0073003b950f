//! The GPU kernels, compiled for the CPU and compared with the same operations in Rust. They are C,
//! and here a single thread does all the work.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use candle_core::{DType, Device, Tensor};
use switchyard_kernels::{Padding, Window2d};

use super::depthwise2d::depthwise;
use super::pooling::max_pool;
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
    T *onto = malloc((out + 1) * sizeof(T));
    T *weights = take(a[15]);
#define SIZES out, a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13]
    if (a[0] == 0) {
        unsigned long long words = out * sizeof(T) / a[14];
        a[5] = a[5] * sizeof(T) / a[14];
#define WORDS words, a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13]
        if (a[14] == 16) unfold_16((void *)from, (void *)onto, WORDS);
        if (a[14] == 4) unfold_4((void *)from, (void *)onto, WORDS);
        if (a[14] == 2) unfold_2((void *)from, (void *)onto, WORDS);
    } else if (a[0] == 1) {
        T *residual = take(a[4] ? out : 0);
        if (a[14] == 4)
            CALL(finish_four_, S)((void *)from, (void *)weights, (void *)residual, out / 4, a[3] / 4,
                                  a[4], a[5]);
        else
            CALL(finish_, S)(from, weights, residual, out, a[3], a[4], a[5]);
        onto = from;
    } else if (a[0] == 2) {
        CALL(max_pool_, S)(from, onto, SIZES);
    } else {
        CALL(depthwise_, S)(from, weights, onto, SIZES);
    }
    fwrite(onto, sizeof(T), out, stdout);
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

fn windows() -> [Window2d; 5] {
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
    [
        Window2d::centred(3, 1),
        Window2d::centred(3, 2),
        Window2d::centred(1, 2),
        Window2d::centred(7, 2),
        odd,
    ]
}

/// The arguments of a kernel over windows: its number, `[2, 9, 8, channels]` images to `count` values
/// in words of `word` bytes, with `weights` weights.
fn call(kernel: i32, window: Window2d, [channels, count, word, weights]: [usize; 4]) -> [i32; 16] {
    let [lines, columns] = window.output(9, 8).unwrap();
    let Window2d {
        kernel: [kernel_y, kernel_x],
        stride,
        padding,
    } = window;
    let sizes = [
        2 * 9 * 8 * channels,
        count,
        9,
        8,
        channels,
        lines,
        columns,
        kernel_y,
        kernel_x,
        stride[0],
        stride[1],
        padding.top,
        padding.left,
        word,
        weights,
    ];
    let mut call = [kernel; 16];
    for (argument, size) in call[1..].iter_mut().zip(sizes) {
        *argument = size as i32;
    }
    call
}

/// Calls `check` for each type of values that the compiler has, with the program of its kernels.
fn each_type(check: impl Fn(&Path, DType)) {
    let folder = tempfile::tempdir().unwrap();
    for dtype in [DType::F32, DType::F16] {
        if let Some(program) = program(folder.path(), dtype) {
            check(&program, dtype);
        }
    }
}

#[test]
fn windows_become_the_rows_of_the_composed_operations() {
    each_type(|program, dtype| {
        for (window, channels) in windows().into_iter().flat_map(|w| [(w, 3), (w, 8)]) {
            let x = eighths(&[2, 9, 8, channels], 1);
            let theirs = Tensor::cat(&taps(window, &x).unwrap(), 3).unwrap();
            let x = x.to_dtype(dtype).unwrap();
            let size = dtype.size_in_bytes();
            let fits = |word: &usize| *word >= size && (channels * size).is_multiple_of(*word);
            for word in [2, 4, 16].into_iter().filter(fits) {
                let call = call(0, window, [channels, theirs.elem_count(), word, 0]);
                let ours = run(program, &call, &[&x], dtype);
                let name = format!("{window:?} {dtype:?} {word}");
                assert_same(&ours, &theirs, 0.0, &name);
            }
        }
    });
}

#[test]
fn pooling_and_depthwise_windows_are_the_composed_operations() {
    each_type(|program, dtype| {
        for window in windows() {
            // Few weights, so that sums are exact in half precision.
            let (x, rows) = (eighths(&[2, 9, 8, 3], 1), window.positions() + 1);
            let weight = (eighths(&[rows, 3], 5) * 2.0).unwrap().round().unwrap();
            let summed = depthwise(&x, &weight, window).unwrap();
            let pooled = max_pool(&x, window).unwrap();
            let [x, weight] = [x, weight].map(|t| t.to_dtype(dtype).unwrap());
            let name = format!("{window:?} {dtype:?}");
            let count = summed.elem_count();
            let sizes = call(3, window, [3, count, 0, rows * 3]);
            let ours = run(program, &sizes, &[&x, &weight], dtype);
            assert_same(&ours, &summed, 0.0, &name);
            let ours = run(program, &call(2, window, [3, count, 0, 0]), &[&x], dtype);
            assert_same(&ours, &pooled, 0.0, &name);
        }
    });
}

#[test]
fn a_value_that_is_no_number_is_the_largest_of_its_windows() {
    each_type(|program, dtype| {
        if dtype == DType::F16 {
            return;
        }
        let window = Window2d::centred(3, 1);
        let mut values = vec![1.0f32; 2 * 9 * 8];
        values[9] = f32::NAN;
        let x = Tensor::from_vec(values, (2, 9, 8, 1), &Device::Cpu).unwrap();
        let sizes = call(2, window, [1, 2 * 9 * 8, 0, 0]);
        let found = self::values(&run(program, &sizes, &[&x], dtype));
        let lost: Vec<usize> = (0..found.len()).filter(|&i| found[i].is_nan()).collect();
        assert_eq!(lost, [0, 1, 2, 8, 9, 10, 16, 17, 18]);
    });
}

#[test]
fn bias_residual_and_relu_are_those_of_the_composed_operations() {
    each_type(|program, dtype| {
        for (channels, group) in [(6usize, 1), (8, 1), (8, 4)] {
            let product = eighths(&[5, channels], 1);
            let (bias, onto) = (eighths(&[channels], 2), eighths(&[5, channels], 4));
            for (has_onto, relu) in [(false, false), (false, true), (true, false), (true, true)] {
                let mut theirs = product.broadcast_add(&bias).unwrap();
                if has_onto {
                    theirs = (theirs + &onto).unwrap();
                }
                if relu {
                    theirs = theirs.relu().unwrap();
                }
                let (wide, count) = (channels as i32, 5 * channels as i32);
                let mut call = [0; 16];
                call[..6].copy_from_slice(&[1, count, count, wide, has_onto.into(), relu.into()]);
                call[14..].copy_from_slice(&[group, wide]);
                let narrow = [&product, &bias, &onto].map(|t| t.to_dtype(dtype).unwrap());
                let inputs: Vec<&Tensor> = narrow.iter().take(2 + usize::from(has_onto)).collect();
                let ours = run(program, &call, &inputs, dtype);
                let name = format!("{channels} by {group}, {has_onto} {relu} {dtype:?}");
                assert_same(&ours, &theirs, 0.0, &name);
            }
        }
    });
}
