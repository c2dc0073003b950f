;; A policy of contract 0.1 with one part replaced by a test. Addresses: 16 the state's list, 32 the
;; description, 96 strings, 1024 an empty result, 2048 the result of a test, from 65536 on whatever the
;; host writes.
(module
  (memory (export "memory") {pages})
  (global $free (mut i32) (i32.const 65536))
  (global $calls (mut i32) (i32.const 0))
  (data (i32.const 96) "hostile1.0.0")
  (data (i32.const 32) "\60\00\00\00\07\00\00\00\67\00\00\00\05\00\00\00\60\00\00\00\00\00\00\00")
  (data (i32.const 72) "\00\01\0f")
  {data}
  (func $deep (param i64) (result i64)
    (i64.add (i64.const 1) (call $deep (i64.add (local.get 0) (i64.const 1)))))
  (func $init {start})
  (start $init)
  (func (export "cabi_realloc") (param $old i32) (param $was i32) (param $align i32) (param $size i32)
    (result i32) (local $at i32)
    {realloc}
    (local.set $at
      (i32.and
        (i32.add (global.get $free) (i32.sub (local.get $align) (i32.const 1)))
        (i32.sub (i32.const 0) (local.get $align))))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (local.get $at))
  (func (export "switchyard:policy/scheduling@0.1.0#describe") (result i32)
    {describe}
    (i32.const 32))
  (func (export "switchyard:policy/scheduling@0.1.0#configure")
    (param i64 i32 i32 i32 i32 i32 i32 i32 i32 f64 i32 i32 i32 i32 i32 i32) (result i32)
    {configure}
    (i32.const 1024))
  (func (export "switchyard:policy/scheduling@0.1.0#schedule") (param $window i32) (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (global.set $free (i32.const 65536))
    {schedule}
    (i32.const 2048))
  (func (export "switchyard:policy/scheduling@0.1.0#save") (result i32)
    {save}
    (i32.const 16))
  (func (export "switchyard:policy/scheduling@0.1.0#restore") (param i32 i32) (result i32)
    {restore}
    (i32.const 1024))
  {more})
