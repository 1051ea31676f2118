//! Event streams.

use std::time::Duration;

use taffrail_api::hub::{StreamFrame, StreamPage};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::*;

/// An event of a stream.
#[derive(Debug)]
struct Event {
    name: String,
    id: String,
    frame: Option<StreamFrame>,
}

impl Event {
    fn page(&self, name: &str) -> Option<&StreamPage> {
        self.frame.as_ref()?.pages.iter().find(|page| page.name == name)
    }
}

/// Returns the names and statuses of the changed rows of a page.
fn told(page: &StreamPage) -> Vec<String> {
    page.rows
        .iter()
        .map(|row| format!("{} {} {}", row.row.cluster, row.row.name, row.row.effective))
        .collect()
}

/// A hub that publishes by itself.
struct Running {
    fleet: SampleFleet,
    router: Router,
    publisher: JoinHandle<()>,
}

impl Running {
    fn new(limits: Limits) -> Running {
        let fleet = fleet();
        let hub = HubApi::of(Arc::clone(&fleet.index), None, limits).unwrap();
        let index = Arc::clone(&fleet.index);
        let publisher = tokio::spawn(async move { index.run().await });
        Running { fleet, router: router(Arc::new(hub)), publisher }
    }

    async fn open(&self, query: &str, last: Option<&str>) -> http::Response<Body> {
        let mut request = http::Request::get(format!("/api/v1/stream?{query}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    async fn stream(&self, query: &str, last: Option<&str>) -> Body {
        let response = self.open(query, last).await;
        assert_eq!(
            (response.status(), &response.headers()["content-type"]),
            (StatusCode::OK, &"text/event-stream".parse().unwrap())
        );
        response.into_body()
    }

    fn turn(&self, name: &str, health: Status) {
        let app = app("eu-1", &format!("shop/{name}"));
        self.fleet.change("eu-1", "observer", vec![observed(&app, health, "says so")]);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.publisher.abort();
    }
}

/// Waits for the next event for at most a minute; `None` if none comes.
async fn next(body: &mut Body) -> Option<Event> {
    let bytes = timeout(Duration::from_secs(60), body.frame()).await.ok()??.unwrap().into_data().unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert!(text.ends_with("\n\n") && text.matches("\n\n").count() == 1, "{text:?}");
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
    Some(Event {
        name: field("event: "),
        id: field("id: "),
        frame: serde_json::from_str(&field("data: ")).ok(),
    })
}

/// Waits for the next event that is a frame.
async fn frame(body: &mut Body) -> Event {
    loop {
        let event = next(body).await.unwrap();
        if event.name != "alive" {
            return event;
        }
    }
}

const PAGES: &str = "subscribe=bad:apps?status=!Ready&subscribe=all:counts&subscribe=clusters:clusters";

#[tokio::test(start_paused = true)]
async fn first_event_has_whole_pages_and_others_what_changed() {
    let hub = Running::new(Limits::default());
    let mut body = hub.stream(PAGES, None).await;
    let first = frame(&mut body).await;
    assert_eq!(first.name, "reset");
    let bad = first.page("bad").unwrap();
    assert_eq!(told(bad), ["eu-1 db Failed", "us-1 web InProgress"]);
    assert_eq!(bad.order, Some(vec![1, 2]));
    let all = first.page("all").unwrap();
    assert_eq!((all.apps.as_ref().unwrap().total, all.rows.len()), (3, 0));
    assert_eq!(first.page("clusters").unwrap().clusters.as_ref().unwrap().live, 2);

    hub.turn("web", Status::Failed);
    let second = frame(&mut body).await;
    assert_eq!(second.name, "frame");
    let bad = second.page("bad").unwrap();
    assert_eq!((told(bad), bad.order.clone()), (vec!["eu-1 web Failed".to_owned()], Some(vec![1, 3, 2])));
    assert_eq!(second.page("all").unwrap().apps.as_ref().unwrap().counts.failed, 2);
    assert!(second.page("clusters").is_none());

    hub.turn("db", Status::Current);
    let third = frame(&mut body).await;
    let bad = third.page("bad").unwrap();
    assert_eq!((bad.rows.len(), bad.order.clone()), (0, Some(vec![3, 2])));

    // Time alone changes what is shown.
    hub.fleet.pass(46);
    let fourth = frame(&mut body).await;
    let bad = fourth.page("bad").unwrap();
    assert_eq!(told(bad), ["eu-1 db Unknown", "eu-1 web Unknown", "us-1 web Unknown"]);
    assert_eq!(fourth.page("clusters").unwrap().clusters.as_ref().unwrap().stale, 2);
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_without_rows() {
    let hub = Running::new(Limits::default());
    let mut body = hub.stream("subscribe=news:changes", None).await;
    let version = frame(&mut body).await.page("news").unwrap().version;
    // Where nothing changes nothing is told.
    assert_eq!(next(&mut body).await.unwrap().name, "alive");
    hub.turn("web", Status::Failed);
    let second = frame(&mut body).await;
    let page = second.page("news").unwrap();
    assert!(page.version > version && version.is_some() && page.rows.is_empty(), "{page:?}");
    hub.fleet.pass(46);
    assert!(frame(&mut body).await.page("news").is_some(), "clusters are not live any more");
}

#[tokio::test(start_paused = true)]
async fn frames_come_at_most_four_times_a_second_and_a_slow_client_gets_fewer() {
    let hub = Running::new(Limits::default());
    let mut body = hub.stream("subscribe=all:apps", None).await;
    frame(&mut body).await;
    let reader = async {
        let begin = Instant::now();
        let mut frames = 0;
        while begin.elapsed() < Duration::from_secs(4) {
            assert_eq!(frame(&mut body).await.page("all").unwrap().rows.len(), 1);
            frames += 1;
        }
        (frames, begin.elapsed())
    };
    let writer = async {
        for round in 0.. {
            hub.turn("web", if round % 2 == 0 { Status::Failed } else { Status::InProgress });
            tokio::time::sleep(Duration::from_millis(83)).await;
        }
    };
    let (frames, time) = tokio::select! { read = reader => read, () = writer => unreachable!() };
    assert!((8..=4 * time.as_millis() / 1_000 + 1).contains(&frames), "{frames} frames in {time:?}");

    // Nobody reads for a minute.
    for round in 0..300 {
        hub.turn("db", if round % 2 == 0 { Status::NotFound } else { Status::Failed });
        hub.turn("web", if round % 2 == 0 { Status::NotFound } else { Status::Current });
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    hub.turn("web", Status::Terminating);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut late = Vec::new();
    while let Some(event) = next(&mut body).await.filter(|event| event.name == "frame") {
        late.push(told(event.page("all").unwrap()));
    }
    // One frame for all 601 changes, with what came of them.
    assert_eq!(late, [["eu-1 db Failed", "eu-1 web Terminating"]]);
}

#[tokio::test(start_paused = true)]
async fn client_that_comes_back_gets_what_it_missed_and_a_stranger_begins_anew() {
    let hub = Running::new(Limits::default());
    let mut body = hub.stream(PAGES, None).await;
    let first = frame(&mut body).await;
    hub.turn("web", Status::Failed);
    let second = frame(&mut body).await;
    drop(body);
    hub.turn("db", Status::NotFound);
    tokio::time::sleep(Duration::from_secs(5)).await;

    // The second frame got lost on the way.
    let mut body = hub.stream(PAGES, Some(&first.id)).await;
    let again = frame(&mut body).await;
    assert_eq!((&*again.name, &again.id, &again.frame), ("frame", &second.id, &second.frame));
    let third = frame(&mut body).await;
    assert_eq!(
        (&*third.name, told(third.page("bad").unwrap())),
        ("frame", vec!["eu-1 db NotFound".to_owned()])
    );
    drop(body);

    for (query, last) in [
        ("subscribe=bad:apps", third.id.clone()),
        (PAGES, "0000000000000000-0000000000000000-3".to_owned()),
        (PAGES, format!("{}9", third.id)),
        (PAGES, "nonsense".to_owned()),
    ] {
        let mut body = hub.stream(query, Some(&last)).await;
        assert_eq!(frame(&mut body).await.name, "reset", "{last}");
    }
    // The stream is kept for a minute, and only for one client.
    let mut body = hub.stream(PAGES, Some(&third.id)).await;
    let mut other = hub.stream(PAGES, Some(&third.id)).await;
    assert_eq!(frame(&mut other).await.name, "reset");
    hub.turn("db", Status::Current);
    let fourth = frame(&mut body).await;
    assert_eq!(fourth.name, "frame");
    drop(body);
    tokio::time::sleep(Duration::from_secs(61)).await;
    let mut body = hub.stream(PAGES, Some(&fourth.id)).await;
    assert_eq!(frame(&mut body).await.name, "reset");
}

#[tokio::test(start_paused = true)]
async fn quiet_stream_says_that_the_hub_is_there_and_ends_after_a_while() {
    let hub = Running::new(Limits::default());
    let mut body = hub.stream("subscribe=all:counts", None).await;
    frame(&mut body).await;
    let begin = Instant::now();
    assert_eq!(next(&mut body).await.unwrap().name, "alive");
    assert!((15..17).contains(&begin.elapsed().as_secs()));
    while let Some(event) = next(&mut body).await {
        assert_eq!(event.name, "alive");
    }
    assert!((890..930).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn number_of_streams_is_bounded() {
    let hub = Running::new(Limits { streams: 1, requests: 1, ..Limits::default() });
    let body = hub.stream("subscribe=all:counts", None).await;
    assert_eq!(hub.open("subscribe=all:counts", None).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    // Streams take nothing from other requests.
    let request = http::Request::get("/api/v1/apps").body(Body::empty()).unwrap();
    assert_eq!(hub.router.clone().oneshot(request).await.unwrap().status(), StatusCode::OK);
    drop(body);
    assert_eq!(hub.open("subscribe=all:counts", None).await.status(), StatusCode::OK);
    assert_eq!(hub.open("subscribe=all:trees", None).await.status(), StatusCode::BAD_REQUEST);
}
