// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension SessionTask.Work {
    /// Applies a request's options to an attempt.
    ///
    /// - Throws: ``TransferFailure/Kind/notInCache`` for a cache policy that forbids the network in a session without a cache.
    mutating func apply(_ settings: RequestSettings, in session: Session) throws(CurlewError) {
        switch self {
        case .transfer(var transfer):
            try transfer.apply(settings, in: session)
            self = .transfer(transfer)
        case .stream(var stream):
            if settings.changesConnections || settings.changesTimeouts { settings.options.apply(to: &stream.options) }
            self = .stream(stream)
        }
    }
}

extension TransferRequest {
    // Field by field: a copy of all options would cost more than what is done with them.
    fileprivate mutating func apply(_ settings: RequestSettings, in session: Session) throws(CurlewError) {
        if settings.changesConnections {
            var changed = options
            settings.options.apply(to: &changed)
            options = changed
        } else if settings.changesTimeouts {
            setTimeouts(
                connect: settings.options.connectTimeout, firstByte: settings.options.firstByteTimeout, idle: settings.options.idleTimeout,
                total: settings.options.totalTimeout)
        }
        if settings.options.withholdsCredentials {
            (settings.options.redirects ?? session.configuration.redirects).removeCredentials(from: &headers)
        }
        if settings.options.isServerWide { try addressServer() }
        if let policy = settings.options.cachePolicy { try setCachePolicy(policy, session.configuration) }
        if let priority = settings.options.priority {
            // Other members of the field are kept, such as `i` (RFC 9218, section 4.2).
            let others = headers.value(for: "Priority").map { $0.splitScalars(separator: ",").map { $0.dropScalars { $0 == " " } } } ?? []
            let members = ["u=\(min(max(priority, 0), 7))"] + others.filter { !$0.hasBytePrefix("u=") }.map { String($0) }
            headers.update(name: "Priority", value: members.joined(separator: ", "))
        }
    }
}

extension TransferRequest {
    /// Makes the request one about the server as a whole.
    private mutating func addressServer() throws(CurlewError) {
        guard method == .options, target == "/" else {
            let message = "`isServerWide` is for OPTIONS requests to URLs without a path and a query: \"OPTIONS *\" has no other target"
            throw .transferFailed(TransferFailure(kind: .configuration, url: url, phase: .queued, message: message))
        }
        isServerWide = true
    }
}

extension RequestSettings {
    /// Whether they change the options of connections, which transfers of a session otherwise share.
    fileprivate var changesConnections: Bool {
        options.proxy != nil || options.addresses != nil || options.httpVersion != nil || options.routing != nil
    }

    fileprivate var changesTimeouts: Bool {
        options.connectTimeout != nil || options.firstByteTimeout != nil || options.idleTimeout != nil || options.totalTimeout != nil
    }
}

extension RequestOptions {
    func apply(to options: inout TransferOptions) {
        if let connectTimeout { options.connectTimeout = connectTimeout }
        if let firstByteTimeout { options.firstByteTimeout = firstByteTimeout }
        if let idleTimeout { options.idleTimeout = idleTimeout }
        if let totalTimeout { options.totalTimeout = totalTimeout }
        if let proxy { options.proxy = proxy }
        if let addresses { options.addresses = addresses }
        if let httpVersion { options.httpVersion = httpVersion }
        if let routing { options.reach.routing = routing.options.filled(from: options.reach.routing) }
    }
}
