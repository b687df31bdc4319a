// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Collects what a partition consists of, as parts with their lengths, so that different parts have different bytes.
///
/// Only what differs from the defaults is added: without any part, requests are in the partition of all plain requests.
struct PartitionWriter {
    private(set) var bytes = Data()

    mutating func add(_ name: String, _ value: some Sequence<UInt8>) {
        let value = Data(value)
        bytes.append(contentsOf: "\(name.utf8.count):\(value.count):\(name)".utf8)
        bytes.append(value)
    }

    mutating func add(_ name: String, _ value: String?) {
        if let value { add(name, value.utf8) }
    }

    /// Adds a part whose presence says it all.
    mutating func add(_ name: String, if isDifferent: Bool) {
        if isDifferent { add(name, "".utf8) }
    }

    /// The text of the partition: empty for that of plain requests, otherwise a SHA-256 digest, which reveals no secret and is the same in
    /// each process.
    var text: String { bytes.isEmpty ? "" : SHA256.digest(of: bytes).hexDigits }

    /// Adds what a file contains, because its path leads to another one on another machine. One that can't be read is equal to no other.
    mutating func add(_ name: String, contentsOf file: String?) {
        guard let file else { return }
        add(name, FileDigest.current(of: file) ?? .makeToken())
    }
}

extension PreparedOptions {
    /// The parts of the partition that the options determine, and their text.
    struct Partition: Sendable {
        let bytes: Data
        let text: String

        fileprivate init(_ prepared: PreparedOptions, isSecure: Bool) {
            var writer = PartitionWriter()
            prepared.options.add(to: &writer, isSecure: isSecure)
            writer.add("transport", prepared.transportPartition)
            bytes = writer.bytes
            text = writer.text
        }
    }

    /// The partition for a URL's scheme, which is computed once.
    fileprivate func partition(isSecure: Bool) -> Partition {
        partitions.withLock { known in
            if let partition = isSecure ? known.secure : known.plain { return partition }
            let partition = Partition(self, isSecure: isSecure)
            if isSecure { known.secure = partition } else { known.plain = partition }
            return partition
        }
    }
}

extension TransferRequest {
    /// What separates the responses that requests may share: what responds, and the credentials with which the request is sent. Empty for
    /// plain requests.
    ///
    /// Equal for equal addresses, trust, client certificate, routing, proxy (where that decides on the responder), kind of transport
    /// (``Transport/cachePartition``), field `Host`, and fields with secrets. Cookies of the session's store count by the store, those that
    /// the program gives a request by their values; a signer by its identity. `Authorization` is left to the rules of HTTP caching, which
    /// know responses that are `public`.
    package var partition: String {
        let own = prepared.partition(isSecure: isSecure)
        let marks = Redaction.current
        let hasMarks = !marks.headers.isEmpty
        var writer: PartitionWriter?
        for field in headers where Self.mayDistinguish(field.name) || hasMarks && marks.marks(header: field.name) {
            guard field.isNamed("Host") || marks.hides(header: field.name), !field.isNamed("Authorization") else { continue }
            if writer == nil {
                writer = PartitionWriter()
                writer?.add("options", own.bytes)
            }
            if let jarCookies, field.isNamed("Cookie") {
                // Not by their values, which servers change with each response: they belong to one user of the session. By their names,
                // because a login adds one, and not all are sent with each request.
                writer?.add("jar", jarCookies.jar)
                writer?.add("cookie.names", jarCookies.names)
                writer?.add("cookie", jarCookies.given)
            } else {
                writer?.add(field.name.lowercased(), field.value)
            }
        }
        if let signing {
            if writer == nil {
                writer = PartitionWriter()
                writer?.add("options", own.bytes)
            }
            writer?.add("signer", signing.identity)
        }
        return writer?.text ?? own.text
    }

    /// The sender of the request: a digest of its fields with secrets and of `Host`, by their values; empty without any. For what outlives
    /// a session, in which a store of cookies has no identity.
    package var sender: String {
        let marks = Redaction.current
        var writer = PartitionWriter()
        for field in headers
        where Self.mayDistinguish(field.name) && (field.isNamed("Host") || marks.hides(header: field.name)) {
            writer.add(field.name.lowercased(), field.value)
        }
        writer.add("signer", signing?.identity)
        if url.withoutUserInfo != url { writer.add("url", url) }
        return writer.text
    }

    /// What responds to the request, as far as the options decide it: a digest; empty for plain requests.
    package var responder: String { prepared.partition(isSecure: isSecure).text }

    /// Whether another request's options, of equal values, lead to the same server as the same client also by their bytes: texts are equal if
    /// they are canonically equivalent, and files by their paths.
    func hasEqualPartition(_ other: TransferRequest) -> Bool {
        prepared.partition(isSecure: isSecure).bytes == other.prepared.partition(isSecure: isSecure).bytes
    }

    /// Whether a field is none of those that most requests have, and that are neither secret nor name the host: looking a name up takes
    /// longer than all else.
    @inline(__always)
    private static func mayDistinguish(_ name: String) -> Bool {
        switch name.utf8.count {
        case 5: !name.equalsIgnoringASCIICase("Range")
        case 6: !name.equalsIgnoringASCIICase("Accept")
        case 10: !name.equalsIgnoringASCIICase("User-Agent")
        case 13: !name.equalsIgnoringASCIICase("Cache-Control")
        case 15: !name.equalsIgnoringASCIICase("Accept-Encoding") && !name.equalsIgnoringASCIICase("Accept-Language")
        default: true
        }
    }
}

// MARK: - Options

// A property of these types that is not added here is one that does not decide who answers; a test lists them.

extension TransferOptions {
    fileprivate func add(to writer: inout PartitionWriter, isSecure: Bool) {
        addresses.add(to: &writer)
        tls.add(to: &writer)
        reachBox?.value.add(to: &writer)
        writer.add("interface", interface)
        // A proxy only forwards what TLS protects, as long as the server is verified; it may reach addresses that are not allowed here.
        guard !isSecure || !tls.verifiesServer || addresses.isLimited, mayUseProxy,
            let proxy = ProxySettings.ofProcess.candidate(isSecure: isSecure, policy: proxy)
        else { return }
        writer.add("proxy", proxy.url)
        writer.add("proxy.except", proxy.exceptions.joined(separator: ","))
    }
}

extension AddressPolicy {
    fileprivate func add(to writer: inout PartitionWriter) {
        if limitsAddresses { writer.add("addresses", exceptions.map(\.partitionText).sorted().joined(separator: ",")) }
        if let ports { writer.add("addresses.ports", ports.sorted().map(String.init).joined(separator: ",")) }
        writer.add("addresses.proxies", if: isLimited && allowsProxies)
    }
}

extension TLSOptions {
    fileprivate func add(to writer: inout PartitionWriter) {
        if minimumVersion != .v1_2 { writer.add("tls.minimum", String(minimumVersion.rawValue)) }
        writer.add("tls.anyChain", if: !verifiesCertificateChain)
        writer.add("tls.anyName", if: !verifiesHostName)
        writer.add("tls.anyEnd", if: !requiresCloseNotify)
        writer.add("tls.stapled", if: requiresStapledResponse)
        writer.add("tls.revoked", revocationListFile)
        for hash in publicKeyHashes.map({ $0.hexDigits }).sorted() { writer.add("tls.keyHash", hash) }
        if let pinnedAuthorities { writer.add("tls.authorities", pinnedAuthorities) } else { addAuthorities(to: &writer) }
        clientCertificate?.add(to: &writer)
        trust?.add(to: &writer)
    }

    private func addAuthorities(to writer: inout PartitionWriter) {
        if let certificateAuthorities { writer.add("tls.authorities", certificateAuthorities) }
        if certificateAuthorities == nil {
            if let authorityContents {
                writer.add("tls.authorityFile", authorityContents.digest)
            } else {
                writer.add("tls.authorityFile", contentsOf: certificateAuthorityFile)
            }
            // What the environment names are the system's, which differ from machine to machine and count nowhere.
            writer.add("tls.noEnvironment", if: certificateAuthorityFile == nil && !usesEnvironment)
        }
        if let additionalAuthorities { writer.add("tls.additionalAuthorities", additionalAuthorities.pem) }
    }
}

extension ClientCertificate {
    fileprivate func add(to writer: inout PartitionWriter) {
        func add(_ name: String, _ source: Source?) {
            switch source {
            case .data(let data)?: writer.add("\(name).data", data)
            case .file(let path)?: writer.add("\(name).file", contentsOf: path)
            case nil: break
            }
        }
        add(contents.form == .pem ? "certificate.pem" : "certificate.pkcs12", contents.certificate)
        add("certificate.key", contents.key)
        writer.add("certificate.password", contents.password)
        writer.add("certificate.limited", if: origins != nil)
        for origin in (origins ?? []).sorted() { writer.add("certificate.origin", origin) }
    }
}

extension TrustRequirement {
    fileprivate func add(to writer: inout PartitionWriter) {
        switch rule {
        case .none: break
        case .certificate(let pins): for pin in pins.map(\.pem.hexDigits).sorted() { writer.add("trust.certificate", pin) }
        case .publicKey(let pins): for pin in pins.map(\.der.hexDigits).sorted() { writer.add("trust.publicKey", pin) }
        case .evaluator(let evaluator): writer.add("trust.evaluator", evaluator.partitionText)
        case .refuse(let reason), .unusable(let reason): writer.add("trust.refuse", reason)
        }
        if let chooser { chooser.choices.choice(at: place(of: chooser))?.certificate?.add(to: &writer) }
    }
}

extension ReachOptions {
    fileprivate func add(to writer: inout PartitionWriter) {
        routing.add(to: &writer)
        if ipVersion != .any { writer.add("ipVersion", ipVersion == .v4 ? "4" : "6") }
        writer.add("doh", dohURL)
        writer.add("doh.any", if: dohURL != nil && !dohVerifiesServer)
        if let mark = socket.mark { writer.add("socket.mark", String(mark)) }
    }
}

extension RoutingOptions {
    fileprivate func add(to writer: inout PartitionWriter) {
        switch unixSocket {
        case .path(let path)?: writer.add("unix.path", path)
        case .abstract(let name)?: writer.add("unix.abstract", name)
        case nil: break
        }
        for (key, addresses) in (resolve?.values ?? [:]).sorted(by: { $0.key < $1.key }) {
            writer.add("resolve", key)
            for address in addresses { writer.add("resolve.address", address) }
        }
        for (key, place) in (connectTo?.values ?? [:]).sorted(by: { $0.key < $1.key }) {
            writer.add("connectTo", key)
            writer.add("connectTo.place", place)
        }
        writer.add("resolver", resolver?.token)
    }
}
