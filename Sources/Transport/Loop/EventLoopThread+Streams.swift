// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// Raw streams: libcurl sets up their connections, and the loop itself reads from and writes to them.

extension EventLoopThread {
    /// Opens a stream, whose connection libcurl sets up.
    func open(_ start: CurlStream) {
        guard let stream = StreamTransfer(start, loop: self, group: group(of: start.group)) else {
            start.slot?.release()
            let failure = TransferFailure(
                kind: .configuration, url: start.request.url, phase: .queued, message: "libcurl ran out of memory")
            return start.observer.stream(
                start.id, didComplete: TransferCompletion(error: CurlewError.transferFailed(failure), metrics: TransferMetrics()))
        }
        streams[stream.number] = stream
        if let error = stream.connect() { complete(stream, error: error) }
    }

    /// libcurl has set up a stream's connection, or failed to.
    func opened(_ stream: StreamTransfer, _ code: CURLcode) {
        if let error = stream.connected(code) { complete(stream, error: error) }
    }

    /// Completes a stream: the only place that does so.
    func complete(_ stream: StreamTransfer, error: (any Error)?) {
        guard streams.removeValue(forKey: stream.number) != nil else { return }
        if let question = stream.question { trust.withdraw(stream.number, from: question) }
        stream.close()
        connectionReporter?.streamEnded(stream.number, error)
        stream.slot?.release()
        stream.complete(error)
    }

    /// Schedules a stream to be read in the next turn.
    func readLater(_ stream: StreamTransfer) {
        unreadStreams.append(stream)
    }

    /// Reads the streams that were left for this turn.
    func resumeReading() {
        guard !unreadStreams.isEmpty else { return }
        let streams = unreadStreams
        unreadStreams.removeAll(keepingCapacity: true)
        for stream in streams { stream.socketReady(.readable) }
    }
}
