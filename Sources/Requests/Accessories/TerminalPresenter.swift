// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// Shows activities in one line of a terminal: a spinner, or a bar where progress is known, with the text of the newest activity.
///
/// Nothing is written unless the descriptor is a terminal whose `TERM` is not `dumb`. The line is drawn ten times a second while there are
/// activities, on a private queue, and removed with the last of them.
public final class TerminalPresenter: ActivityPresenter {
    /// The output on which the line is drawn.
    struct Screen: Sendable {
        /// The width in columns.
        var width: @Sendable () -> Int
        var write: @Sendable (String) -> Void
        /// The time between two redraws, in seconds; `nil` to draw only on changes.
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

    /// Creates a presenter. Two presenters on one terminal overwrite each other.
    ///
    /// - Parameter descriptor: the terminal's file descriptor, borrowed: it must stay open and is not closed. Standard error by default.
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

    /// Adds an activity: the line shows its text.
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

    /// Updates an activity's progress; the bar shows the mean of the activities whose progress is known.
    public func update(_ activity: Activity, fraction: Double) {
        state.withLock { state in
            guard let index = state.activities.firstIndex(where: { $0.activity == activity }) else { return }
            state.activities[index].fraction = fraction.isFinite ? min(max(fraction, 0), 1) : nil
        }
    }

    /// Removes an activity, and the line with the last one.
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

    /// Blocks until all changes so far have been drawn: call it before the program writes its own lines, or exits.
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
        // Carriage return, and erase to the end of the line (ECMA-48).
        screen.write("\r\u{1B}[K" + line)
    }

    // MARK: The line

    private static let frames = ["|", "/", "-", "\\"]
    private static let barWidth = 20

    /// Returns the line to draw, at most `width` minus one characters long.
    static func line(_ text: String, _ fraction: Double?, count: Int, frame: Int, width: Int) -> String {
        var line = frames[frame % frames.count]
        if let fraction {
            let filled = Int(fraction * Double(barWidth))
            let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: barWidth - filled)
            line = "[\(bar)] \(Int(fraction * 100))%"
        }
        if count > 1 { line += " (\(count))" }
        // Texts may come from servers: control characters would control the terminal.
        let plain = String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.properties.generalCategory != .control }))
        if !plain.isEmpty { line += " " + plain }
        // A line that fills the last column would wrap.
        return String(line.prefix(max(width - 1, 0)))
    }
}

/// Terminal access through a file descriptor.
enum Terminal {
    /// Returns the screen of a terminal; `nil` if the descriptor is anything else.
    static func screen(_ descriptor: Int32, _ environment: [String: String] = ProcessInfo.processInfo.environment) -> TerminalPresenter
        .Screen?
    {
        guard isatty(descriptor) == 1, environment["TERM"] != "dumb" else { return nil }
        return TerminalPresenter.Screen(width: { width(of: descriptor) }, write: { try? Descriptor.write(Array($0.utf8), to: descriptor) })
    }

    private static func width(of descriptor: Int32) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
