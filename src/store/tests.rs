//! What a journal writes, and when it says that something is safe.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use outrigger_store::{
    CallListing, CallPage, Changes, Done, Each, FilePage, FileQuery, Hash, Listing, Page, Ran,
    Session, Stats,
};

use super::*;
use crate::message::Part;

/// A store whose disk answers when the test says so.
#[derive(Default)]
struct Slow {
    jobs: Mutex<Vec<(Vec<Change>, Done)>>,
    /// Whether it was said that it does not answer.
    is_silent: AtomicBool,
    is_one_of_several: AtomicBool,
}

impl fmt::Debug for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slow")
    }
}

impl Slow {
    fn answer(&self, result: &Result<(), Error>) {
        for (_, done) in self.jobs.lock().drain(..) {
            done(result.clone());
        }
    }

    fn written(&self) -> Vec<Change> {
        let jobs = self.jobs.lock();
        jobs.iter()
            .flat_map(|(changes, _)| changes.clone())
            .collect()
    }
}

impl Store for Slow {
    fn usage(
        &self,
        _: outrigger_store::UsageQuery,
    ) -> BoxFuture<'static, Result<Vec<outrigger_store::UsageSum>, Error>> {
        unreachable!()
    }

    fn write(&self, _: &str, changes: Vec<Change>, done: Done) {
        self.jobs.lock().push((changes, done));
    }

    fn hurry(&self) {}

    fn attempt(&self, _: &str, _: Vec<Change>) -> BoxFuture<'static, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }

    fn open(&self, _: &str) -> BoxFuture<'static, Result<Option<Session>, Error>> {
        async { Ok(None) }.boxed()
    }

    fn is_here(&self, _: &str) -> BoxFuture<'static, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }

    fn kept(&self, _: u64) -> BoxFuture<'static, Result<u64, Error>> {
        async { Ok(0) }.boxed()
    }

    fn hold(&self, _: &str) -> Held {
        Box::new(())
    }

    fn export(&self, _: &str, _: Each) -> BoxFuture<'static, Result<bool, Error>> {
        async { Ok(false) }.boxed()
    }

    fn import(&self, _: &str, _: Changes) -> BoxFuture<'static, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }

    fn has(&self, _: &str) -> BoxFuture<'static, Result<bool, Error>> {
        async { Ok(false) }.boxed()
    }

    fn has_exchange(&self, _: &str, _: &str) -> BoxFuture<'static, Result<bool, Error>> {
        async { Ok(false) }.boxed()
    }

    fn list(&self, _: Listing) -> BoxFuture<'static, Result<Page, Error>> {
        async { Ok(Page::default()) }.boxed()
    }

    fn calls(&self, _: CallListing) -> BoxFuture<'static, Result<CallPage, Error>> {
        async { Ok(CallPage::default()) }.boxed()
    }

    fn ran(&self, _: i64) -> BoxFuture<'static, Result<Ran, Error>> {
        async { Ok(Ran::default()) }.boxed()
    }

    fn rules(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, Error>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn files(&self, _: FileQuery) -> BoxFuture<'static, Result<FilePage, Error>> {
        async { Ok(FilePage::default()) }.boxed()
    }

    fn attachment(&self, _: Hash) -> BoxFuture<'static, Result<Option<Vec<u8>>, Error>> {
        async { Ok(None) }.boxed()
    }

    fn is_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    fn is_one_of_several(&self) -> bool {
        self.is_one_of_several.load(Ordering::Relaxed)
    }

    fn not_kept(&self) -> Vec<String> {
        Vec::new()
    }

    fn has_room(&self, _: usize) -> bool {
        true
    }

    fn stats(&self) -> BoxFuture<'static, Result<Stats, Error>> {
        async { Ok(Stats::default()) }.boxed()
    }

    fn close(&self) -> BoxFuture<'static, Result<(), Error>> {
        self.flush()
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

fn journal() -> (Arc<Slow>, Journal) {
    let (store, journal, _) = journal_under(CancellationToken::new());
    (store, journal)
}

fn journal_under(tenure: CancellationToken) -> (Arc<Slow>, Journal, CancellationToken) {
    let store = Arc::<Slow>::default();
    let journal = Journal::new(
        (
            Arc::clone(&store) as Arc<dyn Store>,
            Updates::default().of(&outrigger_store::User::default()),
        ),
        &SessionId::new("s"),
        Known::new(None),
        Arc::default(),
        tenure.clone(),
    );
    (store, journal, tenure)
}

fn say(journal: &Journal, text: &str) {
    let message = Message::User(vec![Part::text(text)]);
    let (conversation, exchange) = (ConversationId::new("c"), MessageId::new("m1"));
    journal.messages(&conversation, &exchange, &[message]);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_safe_when_the_store_says_so() {
    let (store, journal) = journal();
    assert!(journal.settled().now_or_never().is_some(), "nothing waits");
    say(&journal, "hi");
    assert_eq!((journal.given(), journal.safe()), (1, 0));
    let mut settled = std::pin::pin!(journal.settled());
    assert!(settled.as_mut().now_or_never().is_none());
    store.answer(&Ok(()));
    assert!(settled.await);
    assert_eq!(journal.safe(), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_disk_that_is_full_or_does_not_answer() {
    let (store, journal) = journal();
    say(&journal, "one");
    store.answer(&Err(Error::Failing("full".to_owned())));
    assert!(journal.settled().now_or_never().is_some());
    assert!(!store.is_silent.load(Ordering::Relaxed), "it answered");
    // The clock is the runtime's: it goes on when nothing else does.
    say(&journal, "two");
    assert!(journal.settled().await);
    assert_eq!(journal.safe(), 2);
    assert!(store.is_silent.load(Ordering::Relaxed), "that is told");
    say(&journal, "three");
    store.answer(&Ok(()));
    assert!(journal.settled().await);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_safe_does_not_leave_one_of_several_daemons() {
    let (store, journal, tenure) = journal_under(CancellationToken::new());
    store.is_one_of_several.store(true, Ordering::Relaxed);
    say(&journal, "one");
    assert!(
        !journal.settled().await,
        "another daemon may have it by now"
    );
    assert!(store.is_silent.load(Ordering::Relaxed), "that is told");
    assert_eq!(journal.safe(), 0);
    assert!(tenure.is_cancelled(), "the session ends");
    store.answer(&Ok(()));
    assert_eq!(journal.safe(), 1, "what is written then is safe");
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_does_not_leave_one_of_several_daemons() {
    let (store, journal, tenure) = journal_under(CancellationToken::new());
    store.is_one_of_several.store(true, Ordering::Relaxed);
    say(&journal, "one");
    assert!(!tenure.is_cancelled());
    store.answer(&Err(Error::Refused("wrong".to_owned())));
    assert!(tenure.is_cancelled(), "the session ends");
    assert!(!journal.settled().await);
    assert_eq!(journal.safe(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_made_with_the_first_thing_worth_keeping() {
    let (store, journal) = journal();
    journal.settings(Configure::default);
    journal.use_seq(20_000);
    assert!(store.written().is_empty());
    say(&journal, "First words\nand more");
    let written = store.written();
    let [
        Change::Create { .. },
        Change::Reserve {
            seq: 30_000,
            ids: 100,
        },
        Change::Settings(_),
        Change::Title {
            title,
            by: TitleBy::Daemon,
        },
        Change::Message { .. },
    ] = written.as_slice()
    else {
        panic!("{written:?}");
    };
    assert_eq!(title, "First words");
    say(&journal, "again");
    assert_eq!(store.written().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn numbers_are_reserved_before_they_run_out() {
    let (store, journal) = journal();
    say(&journal, "hi");
    let before = store.written().len();
    journal.use_seq(9_000);
    journal.use_id(80);
    assert_eq!(store.written().len(), before);
    journal.use_seq(9_001);
    journal.use_id(81);
    let reserved = |change: &Change| match change {
        Change::Reserve { seq, ids } => Some((*seq, *ids)),
        _ => None,
    };
    let reserved: Vec<_> = store.written().iter().filter_map(reserved).collect();
    assert_eq!(reserved, [(10_000, 100), (19_001, 100), (19_001, 181)]);
}
