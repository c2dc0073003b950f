;; A policy of contract 0.2 as a module of a few lines: describes itself, plans nothing, and hands out
;; its memory as its state. Addresses: 0 the last window, 16 the state's list, 32 the description, 96
;; strings, 1024 an empty result, from 4096 on whatever the host writes.
(module
  (memory (export "memory") 16)
  (global $free (mut i32) (i32.const 4096))
  (data (i32.const 96) "by-hand1.0.0")
  ;; name, version, summary
  (data (i32.const 32) "\60\00\00\00\07\00\00\00\67\00\00\00\05\00\00\00\60\00\00\00\00\00\00\00")
  ;; when-empty: no; on: arrival; wants: all five
  (data (i32.const 72) "\00\01\1f")
  (func (export "cabi_realloc") (param $old i32) (param $was i32) (param $align i32) (param $size i32)
    (result i32) (local $at i32)
    (local.set $at
      (i32.and
        (i32.add (global.get $free) (i32.sub (local.get $align) (i32.const 1)))
        (i32.sub (i32.const 0) (local.get $align))))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (local.get $at))
  (func (export "switchyard:policy/scheduling@0.2.0#describe") (result i32)
    (i32.const 32))
  (func (export "switchyard:policy/scheduling@0.2.0#configure")
    (param i64 i32 i32 i32 i32 i32 i32 i32 i32 f64 i32 i32 i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "switchyard:policy/scheduling@0.2.0#schedule") (param $window i32) (result i32)
    (i32.store (i32.const 0) (local.get $window))
    (i32.const 1024))
  (func (export "switchyard:policy/scheduling@0.2.0#save") (result i32)
    (i32.store (i32.const 16) (i32.const 0))
    (i32.store (i32.const 20) (global.get $free))
    (i32.const 16))
  (func (export "switchyard:policy/scheduling@0.2.0#restore") (param i32 i32) (result i32)
    (i32.const 1024)))
