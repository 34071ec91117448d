//! The threads that loops run on, what they share, and what they say to each other.
//!
//! No loop waits for another: what is shared is atomic, bounded or never changes, and what is said is put into a ring
//! or a queue that has an end.
//!
//! | file | what it knows |
//! |---|---|
//! | `thread` | a loop's thread, and where and how willingly a thread runs |
//! | `shared` | what all threads share |
//! | `mesh` | the rings and queues between every two loops |
//! | `message` | what they carry |
//! | `waker` | how one loop wakes another that sleeps, and only then |
//! | `marks` | how far the log is acknowledged, as one loop sees it |
//! | `tally` | what each loop has done, for whoever watches |

pub(super) mod marks;
pub(super) mod mesh;
pub(super) mod message;
pub(super) mod shared;
pub(super) mod tally;
pub(super) mod thread;
mod waker;
