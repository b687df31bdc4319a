// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewRequests

@Suite(.timeLimit(.minutes(1))) struct ActivityTests {
    /// Records the activities shown.
    private final class Presenter: ActivityPresenter {
        private let shown = Lock<[Activity]>([])
        let log = Log()
        var count: Int { shown.withLock { $0.count } }

        func show(_ activity: Activity) {
            shown.withLock { $0.append(activity) }
            log.note("show \(activity.text)")
        }
        func update(_ activity: Activity, fraction: Double) { log.note("update \(fraction)") }
        func hide(_ activity: Activity) {
            shown.withLock { $0.removeAll { $0 == activity } }
            log.note("hide \(activity.text)")
        }
    }

    /// A terminal that is redrawn only on changes.
    private final class Screen: Sendable {
        private let text = Lock("")
        var all: String { text.withLock { $0 } }

        func presenter() -> TerminalPresenter {
            TerminalPresenter(
                screen: .init(width: { 40 }, write: { piece in self.text.withLock { $0 += piece } }, interval: nil))
        }
    }

    // MARK: Accessory

    @Test func `a request is shown from its start until its callbacks run`() async throws {
        let stage = try Stage.standard()
        let presenter = Presenter()
        let request = SampleRequest(stage)
        request.addAccessory(ActivityAccessory(presenter: presenter, text: "loading"))
        request.successCompletionBlock = { _ in presenter.log.note("block") }
        #expect(await run(request) == .succeeded)
        #expect(presenter.log.all == ["show loading @caller", "hide loading @callback", "block @callback"])
    }

    @Test func `one accessory shows several requests and hides failed and stopped ones`() async throws {
        let stage = try GroupStage()
        let presenter = Presenter()
        let accessory = ActivityAccessory(presenter: presenter)
        let requests = stage.requests("held", "held", "bad")
        for request in requests { request.addAccessory(accessory) }
        async let failed = run(requests[2])
        for request in requests.prefix(2) { request.start() }
        #expect(await failed == .failed)
        #expect(presenter.count == 2)
        for request in requests.prefix(2) { request.stop() }
        #expect(presenter.count == 0)
        // A request that never ran has no activity to hide.
        let idle = stage.request("idle")
        idle.addAccessory(accessory)
        idle.stop()
        #expect(presenter.count == 0)
        stage.gate.open()
    }

    @Test func `batches and chains are shown as one activity`() async throws {
        let stage = try GroupStage()
        let presenter = Presenter()
        let batch = BatchRequest(requestArray: stage.requests("a", "b"))
        let chain = ChainRequest()
        chain.addBatch(batch)
        chain.addAccessory(ActivityAccessory(presenter: presenter, text: "all"))
        #expect(await run(chain) == .succeeded)
        #expect(presenter.log.all == ["show all @caller", "hide all @callback"])
    }

    @Test func `progress is reported while the request is shown`() {
        let presenter = Presenter()
        let accessory = ActivityAccessory(presenter: presenter)
        let batch = BatchRequest(requestArray: [])
        let block = accessory.progressBlock(for: batch)
        let progress = Progress(totalUnitCount: 4)
        progress.completedUnitCount = 1
        block(progress)
        accessory.requestWillStart(batch)
        block(progress)
        accessory.requestWillStop(batch)
        block(progress)
        #expect(presenter.log.all == ["show  @caller", "update 0.25 @caller", "hide  @caller"])
    }

    // MARK: Terminal

    @Test func `the line is removed with the last activity`() {
        let screen = Screen()
        let presenter = screen.presenter()
        let (one, two) = (Activity(text: "one"), Activity(text: "two"))
        presenter.hide(one)
        presenter.show(one)
        presenter.flush()
        #expect(screen.all == "\r\u{1B}[K/ one")
        presenter.show(two)
        presenter.flush()
        #expect(screen.all.hasSuffix("\r\u{1B}[K- (2) two"))
        presenter.hide(two)
        presenter.hide(two)
        presenter.flush()
        #expect(screen.all.hasSuffix("\r\u{1B}[K\\ one"))
        presenter.hide(one)
        presenter.flush()
        #expect(screen.all.hasSuffix("one\r\u{1B}[K"))
    }

    @Test func `concurrent activities leave nothing behind`() async {
        let screen = Screen()
        let presenter = screen.presenter()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask {
                    let activity = Activity(text: "\(number)")
                    presenter.show(activity)
                    presenter.update(activity, fraction: 0.5)
                    presenter.hide(activity)
                }
            }
        }
        presenter.flush()
        #expect(screen.all.hasSuffix("\r\u{1B}[K"))
    }

    @Test(arguments: [
        ("text", nil, 1, 40, "/ text"), ("", nil, 1, 40, "/"), ("", nil, 3, 40, "/ (3)"),
        ("a\u{1B}[31m\r\n\u{9B}b", nil, 1, 40, "/ a[31mb"),
        ("get", 0.5, 1, 40, "[##########..........] 50% get"), ("get", 1, 2, 40, "[####################] 100% (2) get"),
        ("a long text that does not fit", nil, 1, 10, "/ a long "), ("text", nil, 1, 0, ""),
    ])
    func `the line fits, and has no control characters`(_ text: String, _ fraction: Double?, _ count: Int, _ width: Int, _ line: String) {
        #expect(TerminalPresenter.line(text, fraction, count: count, frame: 1, width: width) == line)
    }

    @Test func `only a terminal is drawn on`() throws {
        var (master, terminal) = (Int32(-1), Int32(-1))
        try #require(openpty(&master, &terminal, nil, nil, nil) == 0)
        defer {
            close(master)
            close(terminal)
        }
        #expect(Terminal.screen(terminal, ["TERM": "dumb"]) == nil)
        var pipes: [Int32] = [-1, -1]
        try #require(pipe(&pipes) == 0)
        defer { for descriptor in pipes { close(descriptor) } }
        #expect(Terminal.screen(pipes[1], ["TERM": "xterm"]) == nil)

        let presenter = TerminalPresenter(screen: Terminal.screen(terminal, ["TERM": "xterm"]))
        let activity = Activity(text: "loading")
        presenter.show(activity)
        presenter.flush()
        presenter.hide(activity)
        presenter.flush()
        let (shown, hidden) = ("\r\u{1B}[K/ loading", "\r\u{1B}[K")
        let text = Self.text(of: master, count: shown.utf8.count + hidden.utf8.count)
        #expect(text.hasPrefix(shown))
        #expect(text.hasSuffix(hidden))
    }

    /// Reads a number of bytes written to a terminal, which the kernel delivers in pieces.
    private static func text(of master: Int32, count: Int) -> String {
        var text: [UInt8] = []
        var wait = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
        while text.count < count, poll(&wait, 1, 10_000) > 0 {
            var bytes = [UInt8](repeating: 0, count: 4096)
            let length = read(master, &bytes, bytes.count)
            guard length > 0 else { break }
            text += bytes.prefix(length)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
