// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension SessionTask.Work {
    /// Applies the options of a request to an attempt.
    ///
    /// - Throws: ``TransferFailure/Kind/notInCache`` for a cache policy that forbids the network in a session without a cache.
    mutating func apply(_ options: RequestOptions, in session: Session) throws(CurlewError) {
        switch self {
        case .transfer(var transfer):
            try transfer.apply(options, in: session)
            self = .transfer(transfer)
        case .stream(var stream):
            if options.changesTransfers { options.apply(to: &stream.options) }
            self = .stream(stream)
        }
    }
}

extension TransferRequest {
    fileprivate mutating func apply(_ options: RequestOptions, in session: Session) throws(CurlewError) {
        if options.changesTransfers {
            var changed = self.options
            options.apply(to: &changed)
            self.options = changed
        }
        if let policy = options.cachePolicy { try setCachePolicy(policy, session.configuration) }
        if let priority = options.priority {
            // Other members of the field are kept, such as `i` (RFC 9218, section 4.2).
            let others = headers.value(for: "Priority").map { $0.split(separator: ",").map { $0.trimmingPrefix { $0 == " " } } } ?? []
            let members = ["u=\(min(max(priority, 0), 7))"] + others.filter { !$0.hasPrefix("u=") }.map { String($0) }
            headers.update(name: "Priority", value: members.joined(separator: ", "))
        }
    }
}

extension RequestOptions {
    /// Whether they change the options of transfers, which transfers of a session otherwise share.
    fileprivate var changesTransfers: Bool {
        connectTimeout != nil || firstByteTimeout != nil || idleTimeout != nil || totalTimeout != nil || proxy != nil || addresses != nil
            || httpVersion != nil
    }

    fileprivate func apply(to options: inout TransferOptions) {
        if let connectTimeout { options.connectTimeout = connectTimeout }
        if let firstByteTimeout { options.firstByteTimeout = firstByteTimeout }
        if let idleTimeout { options.idleTimeout = idleTimeout }
        if let totalTimeout { options.totalTimeout = totalTimeout }
        if let proxy { options.proxy = proxy }
        if let addresses { options.addresses = addresses }
        if let httpVersion { options.httpVersion = httpVersion }
    }
}
