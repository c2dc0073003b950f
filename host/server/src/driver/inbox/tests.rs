use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::*;

/// Everything that waits now, at most `most`.
fn taken(receiver: &Receiver<u32>, most: usize) -> Result<Vec<u32>, Ended> {
    let mut to = VecDeque::new();
    receiver.take(most, Some(Instant::now()), &mut to)?;
    Ok(to.into())
}

#[test]
fn comes_in_order_and_in_portions() {
    let (sender, receiver) = inbox(8);
    for i in 0..5 {
        sender.try_send(i, 8).unwrap();
    }
    assert_eq!(taken(&receiver, 3), Ok(vec![0, 1, 2]));
    assert_eq!(taken(&receiver, 3), Ok(vec![3, 4]));
    assert_eq!(taken(&receiver, 3), Ok(vec![]));
}

#[test]
fn a_portion_goes_behind_what_is_left_of_the_last_one() {
    let (sender, receiver) = inbox(8);
    let mut to = VecDeque::from([7]);
    sender.send(8).unwrap();
    receiver.take(8, None, &mut to).unwrap();
    assert_eq!(to, [7, 8]);
}

#[test]
fn bounds_are_those_of_the_sender_and_of_the_inbox() {
    let (sender, receiver) = inbox(2);
    sender.try_send(0, 1).unwrap();
    assert_eq!(sender.try_send(1, 1), Err(NotSent::Full(1)));
    sender.try_send(1, 100).unwrap();
    assert_eq!(sender.try_send(2, 100), Err(NotSent::Full(2)));
    drop(receiver);
    assert_eq!(sender.try_send(2, 100), Err(NotSent::Closed(2)));
    assert_eq!(sender.send(2), Err(2));
}

#[test]
fn ends_with_the_last_sender_and_after_the_last_message() {
    let (sender, receiver) = inbox(2);
    let other = sender.clone();
    drop(sender);
    other.send(1).unwrap();
    drop(other);
    assert_eq!(taken(&receiver, 8), Ok(vec![1]));
    assert_eq!(taken(&receiver, 8), Err(Ended));
}

#[test]
fn a_sender_waits_for_room_and_hears_of_the_end() {
    let (sender, receiver) = inbox(1);
    sender.send(0).unwrap();
    let waiting = thread::spawn({
        let sender = sender.clone();
        move || (sender.send(1), sender.send(2))
    });
    let mut to = VecDeque::new();
    while to.len() < 2 {
        receiver.take(1, None, &mut to).unwrap();
    }
    drop(receiver);
    let (first, second) = waiting.join().unwrap();
    assert_eq!((to, first), (VecDeque::from([0, 1]), Ok(())));
    // Sent before the end, or given back because of it.
    assert!(matches!(second, Ok(()) | Err(2)));
}

#[test]
fn time_ends_a_wait() {
    let (_sender, receiver) = inbox::<u32>(1);
    let began = Instant::now();
    let mut to = VecDeque::new();
    let until = began + Duration::from_millis(20);
    receiver.take(1, Some(until), &mut to).unwrap();
    assert!(to.is_empty() && began.elapsed() >= Duration::from_millis(20));
}

/// Many senders of all kinds through a small inbox: nothing is lost, doubled or overtaken by its
/// own, whoever reads.
#[test]
fn nothing_is_lost_between_threads() {
    const SENDERS: u32 = 4;
    const EACH: u32 = 5_000;
    let (sender, receiver) = inbox(16);
    let read = Mutex::new(Vec::new());
    let attend = |attending: Option<Attending<'_, u32>>| {
        let Some(attending) = attending else {
            return;
        };
        let mut to = VecDeque::new();
        // Some are for the reader only.
        attending.take(3, |message| !message.is_multiple_of(7), &mut to);
        read.lock().unwrap().extend(to);
        attending.leave(None);
    };
    thread::scope(|scope| {
        for s in 0..SENDERS {
            let sender = sender.clone();
            let attend = &attend;
            scope.spawn(move || {
                for i in 0..EACH {
                    let message = s * EACH + i;
                    match i % 4 {
                        0 => sender.send(message).unwrap(),
                        1 => attend(sender.send_and_attend(message).unwrap()),
                        2 => {
                            while sender.try_send(message, 8).is_err() {
                                thread::yield_now();
                            }
                        }
                        _ => loop {
                            if let Ok(promise) = sender.try_leave(message, 8) {
                                thread::yield_now();
                                attend(promise.and_then(WakeOnDrop::attend));
                                break;
                            }
                        },
                    }
                }
            });
        }
        drop(sender);
        let mut to = VecDeque::new();
        while receiver.take(5, None, &mut to).is_ok() {
            read.lock().unwrap().extend(to.drain(..));
        }
    });
    let mut next = [0; SENDERS as usize];
    for message in read.into_inner().unwrap() {
        let next = &mut next[(message / EACH) as usize];
        assert_eq!(message % EACH, *next);
        *next += 1;
    }
    assert_eq!(next, [EACH; SENDERS as usize]);
}

/// A reader that sleeps, and what it takes when it wakes.
fn asleep<'scope, 'env: 'scope>(
    scope: &'scope thread::Scope<'scope, 'env>,
    receiver: &'env Receiver<u32>,
) -> thread::ScopedJoinHandle<'scope, VecDeque<u32>> {
    let reader = scope.spawn(|| {
        let mut to = VecDeque::new();
        receiver.take(8, None, &mut to).unwrap();
        to
    });
    while receiver.0.lock().reader != Reader::Asleep {
        thread::yield_now();
    }
    reader
}

#[test]
fn what_is_left_wakes_a_sleeping_reader_once() {
    let (sender, receiver) = inbox(8);
    thread::scope(|scope| {
        let reader = asleep(scope, &receiver);
        let wake = sender.try_leave(0, 8).unwrap();
        assert!(wake.is_some());
        assert!(sender.try_leave(1, 8).unwrap().is_none());
        assert_eq!(receiver.0.lock().reader, Reader::Asleep);
        drop(wake);
        assert_eq!(reader.join().unwrap(), [0, 1]);
        // Each sleep has its own.
        let reader = asleep(scope, &receiver);
        drop(sender.try_leave(2, 8).unwrap().expect("a promise"));
        assert_eq!(reader.join().unwrap(), [2]);
    });
    assert!(sender.try_leave(3, 8).unwrap().is_none(), "nobody sleeps");
}

#[test]
fn whoever_sends_meanwhile_wakes_at_once() {
    let (sender, receiver) = inbox(8);
    thread::scope(|scope| {
        let reader = asleep(scope, &receiver);
        let wake = sender.try_leave(0, 8).unwrap();
        sender.try_send(1, 8).unwrap();
        assert_eq!(reader.join().unwrap(), [0, 1]);
        // Late, and of no use to anybody.
        let reader = asleep(scope, &receiver);
        drop(wake);
        assert!(!reader.is_finished());
        sender.try_send(2, 8).unwrap();
        assert_eq!(reader.join().unwrap(), [2]);
    });
}

#[test]
fn whoever_attends_reads_while_the_reader_sleeps_on() {
    let (sender, receiver) = inbox(8);
    thread::scope(|scope| {
        let reader = asleep(scope, &receiver);
        let attending = sender.send_and_attend(0).unwrap().expect("it sleeps");
        // Neither wakes it, nor does anybody else attend.
        sender.send(1).unwrap();
        assert!(sender.try_leave(2, 8).unwrap().is_none());
        assert!(sender.send_and_attend(9).unwrap().is_none());
        let mut to = VecDeque::new();
        attending.take(2, |_| true, &mut to);
        assert_eq!(to, [0, 1]);
        attending.take(8, |message| *message < 9, &mut to);
        assert_eq!(to, [0, 1, 2]);
        assert!(!reader.is_finished());
        attending.leave(None);
        assert_eq!(reader.join().unwrap(), [9], "what was not theirs");
    });
}

#[test]
fn a_reader_sleeps_on_when_nothing_is_left_and_until_the_time_that_it_is_given() {
    let (sender, receiver) = inbox(8);
    thread::scope(|scope| {
        let reader = asleep(scope, &receiver);
        let promise = sender.try_leave(0, 8).unwrap().expect("it sleeps");
        let attending = promise.attend().expect("it still sleeps");
        let mut to = VecDeque::new();
        attending.take(8, |_| true, &mut to);
        attending.leave(None);
        assert_eq!(receiver.0.lock().reader, Reader::Asleep);
        let attending = sender.send_and_attend(1).unwrap().expect("it sleeps");
        attending.take(8, |_| true, &mut to);
        assert_eq!(to, [0, 1]);
        let until = Instant::now() + Duration::from_millis(20);
        attending.leave(Some(until));
        assert!(reader.join().unwrap().is_empty());
        assert!(Instant::now() >= until);
    });
}

#[test]
fn whoever_attends_and_fails_leaves_the_rest_to_the_reader() {
    let (sender, receiver) = inbox(8);
    thread::scope(|scope| {
        let reader = asleep(scope, &receiver);
        let attending = sender.send_and_attend(0).unwrap();
        drop(attending.expect("it sleeps"));
        assert_eq!(reader.join().unwrap(), [0]);
        let reader = asleep(scope, &receiver);
        let attending = sender.send_and_attend(1).unwrap().expect("it sleeps");
        attending.take(8, |_| true, &mut VecDeque::new());
        drop(attending);
        let found = reader.join().unwrap();
        assert!(found.is_empty(), "it looks, and finds nothing");
    });
}
