// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

@testable import CurlewCore

/// Records the exchanges, and sets a field with the exchange's number.
struct RecordingInstrument: ExchangeInstrument {
    let started = Inbox<OutgoingExchange>()
    let ended = Inbox<String>()
    let heads = Inbox<Int>()
    var contextCarrier: (any ContextCarrier)?
    var eventMonitor: (any EventMonitor)?
    /// Leaves exchanges with another host alone.
    var host: String?

    func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
        started.put(exchange)
        return host.map { $0 == exchange.origin?.host } ?? true ? Observation(instrument: self, number: exchange.number) : nil
    }

    private final class Observation: ExchangeObservation {
        let instrument: RecordingInstrument
        let number: Int

        init(instrument: RecordingInstrument, number: Int) {
            self.instrument = instrument
            self.number = number
        }

        var headers: HTTPHeaders { ["X-Number": "\(number)", "Bad Name": "left out"] }

        func didReceiveInterim(_ head: ResponseHead) { instrument.heads.put(head.statusCode) }

        func didReceive(_ head: ResponseHead) { instrument.heads.put(head.statusCode) }

        func didEnd(_ completion: ExchangeCompletion) {
            let error =
                switch completion.error {
                case nil: "ok"
                case CurlewError.transferFailed(let failure)?: failure.kind.rawValue
                case CurlewError.cancelled?: "cancelled"
                case CurlewError.sessionInvalidated?: "invalidated"
                case CurlewError.sessionShutDown?: "shut down"
                case let error?: "\(error)"
                }
            instrument.ended.put("\(number) \(completion.head.map { "\($0.statusCode)" } ?? "-") \(error)")
        }
    }

    /// Reason, attempt and number of each exchange.
    var reasons: [String] { started.all.map { "\($0.reason.rawValue) \($0.attempt).\($0.number)" } }
}
