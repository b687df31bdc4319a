// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// Shows activities in one line of a terminal: a spinner, or a bar where it is known how much is done, with the text of the newest.
///
/// On anything but a terminal, and on one that says it is `dumb`, nothing is written. The line is drawn ten times a second, on a queue of
/// its own, as long as there are activities, and removed with the last of them.
public final class TerminalPresenter: ActivityPresenter {
    /// Where the line is drawn.
    struct Screen: Sendable {
        /// In columns.
        var width: @Sendable () -> Int
        var write: @Sendable (String) -> Void
        /// Between two drawings; `nil` if it is drawn only when something changes.
        var interval: Double? = 0.1
    }

    private struct State {
        var activities: [(activity: Activity, fraction: Double?)] = []
        var frame = 0
        var timer: (any DispatchSourceTimer)?
    }

    /// The presenter on standard error.
    public static let shared = TerminalPresenter()

    private let screen: Screen?
    private let queue = DispatchQueue(label: "curlew.requests.terminal")
    private let state = Lock(State())

    /// Makes a presenter. Two on one terminal draw over each other.
    ///
    /// - Parameter descriptor: of the terminal; standard error by default. Not closed, and to stay open.
    public convenience init(descriptor: Int32 = 2) {
        self.init(screen: Terminal.screen(descriptor))
    }

    init(screen: Screen?) {
        self.screen = screen
    }

    deinit {
        state.withLock { $0.timer }?.cancel()
    }

    // MARK: ActivityPresenter

    /// An activity begins: the line has its text.
    public func show(_ activity: Activity) {
        guard let screen else { return }
        let isFirst = state.withLock { state in
            state.activities.append((activity, nil))
            return state.activities.count == 1
        }
        queue.async {
            if isFirst { self.begin(screen) }
            self.draw(screen)
        }
    }

    /// So much is done; the bar shows the mean of the activities of which that is known.
    public func update(_ activity: Activity, fraction: Double) {
        state.withLock { state in
            guard let index = state.activities.firstIndex(where: { $0.activity == activity }) else { return }
            state.activities[index].fraction = fraction.isFinite ? min(max(fraction, 0), 1) : nil
        }
    }

    /// An activity is over; with the last the line goes.
    public func hide(_ activity: Activity) {
        guard let screen else { return }
        let isKnown = state.withLock { state in
            let count = state.activities.count
            state.activities.removeAll { $0.activity == activity }
            return state.activities.count < count
        }
        guard isKnown else { return }
        queue.async { self.draw(screen) }
    }

    /// Waits until all that was said so far has been drawn: before a program writes lines of its own, or ends.
    public func flush() {
        queue.sync {}
    }

    // MARK: The queue

    private func begin(_ screen: Screen) {
        guard let interval = screen.interval else { return }
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + interval, repeating: interval)
        timer.setEventHandler { [weak self] in self?.draw(screen) }
        let old = state.withLock { state in
            defer { state.timer = timer }
            return state.timer
        }
        old?.cancel()
        timer.resume()
    }

    func draw(_ screen: Screen) {
        let (line, ended) = state.withLock { state -> (String, (any DispatchSourceTimer)?) in
            guard let newest = state.activities.last?.activity else {
                defer { state.timer = nil }
                return ("", state.timer)
            }
            state.frame += 1
            let fractions = state.activities.compactMap(\.fraction)
            let mean = fractions.isEmpty ? nil : fractions.reduce(0, +) / Double(fractions.count)
            return (Self.line(newest.text, mean, count: state.activities.count, frame: state.frame, width: screen.width()), nil)
        }
        ended?.cancel()
        // To the line's beginning, and clear to its end (ECMA-48).
        screen.write("\r\u{1B}[K" + line)
    }

    // MARK: The line

    private static let frames = ["|", "/", "-", "\\"]
    private static let barWidth = 20

    /// What is drawn, in one line less than so wide.
    static func line(_ text: String, _ fraction: Double?, count: Int, frame: Int, width: Int) -> String {
        var line = frames[frame % frames.count]
        if let fraction {
            let filled = Int(fraction * Double(barWidth))
            let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: barWidth - filled)
            line = "[\(bar)] \(Int(fraction * 100))%"
        }
        if count > 1 { line += " (\(count))" }
        // Texts may come from servers, and are not to steer the terminal.
        let plain = String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.properties.generalCategory != .control }))
        if !plain.isEmpty { line += " " + plain }
        // A line that fills the last column would go on in the next one.
        return String(line.prefix(max(width - 1, 0)))
    }
}

/// What a descriptor is open on.
enum Terminal {
    /// A screen on a terminal; `nil` on anything else.
    static func screen(_ descriptor: Int32, _ environment: [String: String] = ProcessInfo.processInfo.environment) -> TerminalPresenter
        .Screen?
    {
        guard isatty(descriptor) == 1, environment["TERM"] != "dumb" else { return nil }
        return TerminalPresenter.Screen(width: { width(of: descriptor) }, write: { write($0, to: descriptor) })
    }

    private static func width(of descriptor: Int32) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    private static func write(_ text: String, to descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { systemWrite(descriptor, $0) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
        }
    }
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int { write(descriptor, bytes.baseAddress, bytes.count) }
