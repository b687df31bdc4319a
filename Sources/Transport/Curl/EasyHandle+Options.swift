// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// The only place where libcurl's options for transfers and streams are chosen. Options with a surprising purpose have a comment.
//
// Not set, because Curlew implements them: redirects (``Transport``), content codings (``BodyDecoder``), timeouts other than the connect
// timeout (``TimeLimits``), and in general the limit of connections per host (``HostQueue``).

extension EasyHandle {
    /// The largest body sent over HTTP/2 with a libcurl that may hang on HTTP/2 uploads; bodies of unknown size are not.
    private static let largestBodyForOldHTTP2 = 64 * 1024

    /// Sets all options of a transfer.
    ///
    /// The options of an ordinary request are kept for the next one like it, because most consecutive requests have the same options.
    func configure(for transfer: Transfer) throws(OptionError) {
        let isOrdinary = transfer.request.isOrdinary && !transfer.exchange.needsFreshConnection && !transfer.request.prepared.dependsOnURL
        let proxy = transfer.proxy
        if isOrdinary, let ordinarySetup, ordinarySetup.options === transfer.request.prepared,
            ordinarySetup.isSecure == transfer.isSecure, ordinarySetup.proxy == proxy
        {
            forgetMessage()
            try setURL(transfer.request.url)
            let connectTimeout = transfer.request.connectTimeoutMilliseconds
            if ordinarySetup.connectTimeoutMilliseconds != connectTimeout {
                try set(CURLOPT_CONNECTTIMEOUT_MS, connectTimeout)
                ordinarySetup.connectTimeoutMilliseconds = connectTimeout
            }
            guard ordinarySetup.headers != transfer.request.headers else { return }
        } else {
            reset()
            try configureFully(for: transfer, proxy)
        }
        ordinarySetup = nil
        let request = try transfer.signedRequest()
        try setHeaders(headerLines(for: request))
        guard isOrdinary else { return }
        ordinarySetup = OrdinarySetup(
            options: request.prepared, connectTimeoutMilliseconds: request.connectTimeoutMilliseconds, isSecure: transfer.isSecure,
            proxy: proxy, headers: request.headers)
    }

    private func configureFully(for transfer: Transfer, _ proxy: Proxy?) throws(OptionError) {
        let request = transfer.request
        try setConnection(for: transfer, to: request.url, isSecure: transfer.isSecure, options: request.prepared, proxy: proxy)
        try set(CURLOPT_CONNECTTIMEOUT_MS, transfer.connectTimeoutMilliseconds)
        try setURL(request.url)
        try setCallbacks(for: transfer)
        try setMethod(for: transfer)
        try setVersion(for: transfer)
        if let authentication = request.authentication { try setAuthentication(authentication) }
        if let target = transfer.serverWideTarget { try set(CURLOPT_REQUEST_TARGET, target) }
        if request.expectsLargeBody {
            try set(CURLOPT_BUFFERSIZE, 256 * 1024)
            try set(CURLOPT_UPLOAD_BUFFERSIZE, 256 * 1024)
        }
        if transfer.exchange.needsFreshConnection { try set(CURLOPT_FRESH_CONNECT, true) }
        if request.opensConnectionOnly { try setConnectionOnly() }
    }

    /// Sets all options of a raw stream.
    func configure(for stream: StreamTransfer) throws(OptionError) {
        let request = stream.request
        let options = stream.prepared
        try setConnection(for: stream, to: request.url, isSecure: request.isSecure, options: options, proxy: stream.proxy)
        try set(CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeoutMilliseconds)
        try set(CURLOPT_URL, stream.request.url)
        try set(CURLOPT_CONNECT_ONLY, true)
        // The bytes that follow belong to the stream's user: HTTP/2 must be neither spoken nor offered in ALPN.
        try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        try set(CURLOPT_SSL_ENABLE_ALPN, false)
        if stream.proxy != nil { try set(CURLOPT_HTTPPROXYTUNNEL, true) }
        if stream.request.isSecure {
            try check(ccurlew_set_prereq_callback(raw, StreamTransfer.prereqCallback), CURLOPT_PREREQFUNCTION)
            try set(CURLOPT_PREREQDATA, pointer: borrowedPointer(to: stream))
        }
    }

    /// Sets the options of the connection, for transfers and streams.
    private func setConnection(
        for member: MultiMember, to url: String, isSecure: Bool, options: PreparedOptions, proxy: Proxy?
    ) throws(OptionError) {
        try setErrorBuffer()
        try set(CURLOPT_PRIVATE, pointer: borrowedPointer(to: member))
        try set(CURLOPT_NOSIGNAL, true)
        // Without this, cancelling a transfer during name resolution blocks the event loop.
        try set(CURLOPT_QUICK_EXIT, true)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
        try check(ccurlew_set_opensocket_callback(raw, Transfer.openSocketCallback), CURLOPT_OPENSOCKETFUNCTION)
        try check(ccurlew_set_closesocket_callback(raw, Transfer.closeSocketCallback), CURLOPT_CLOSESOCKETFUNCTION)
        try set(CURLOPT_OPENSOCKETDATA, pointer: borrowedPointer(to: member))
        try set(CURLOPT_CLOSESOCKETDATA, pointer: borrowedPointer(to: member.loop))
        member.setUpCount += 1
        let tls = options.options.tls
        // Always: a handle that once had no share keeps sessions of its own, which libcurl loses when it gets one.
        if let share = member.group.share { try set(CURLOPT_SHARE, pointer: share) }
        // A resumed TLS session carries no certificates.
        if tls.trust?.needsCertificates == true { try set(CURLOPT_SSL_SESSIONID_CACHE, false) }
        if let seconds = member.group.idleSeconds { try set(CURLOPT_MAXAGE_CONN, seconds) }
        if let interface = options.options.interface { try setInterface(interface, isAddress: options.options.isBoundToAddress) }
        let reach = options.options.reachBox?.value
        if let reach { try setReach(reach, member.route) }
        // The server that resolves names is verified by the same options.
        if isSecure || reach?.dohURL != nil {
            try setTLS(tls, to: url, for: member)
        } else {
            // libcurl would duplicate the default paths for each transfer.
            try set(CURLOPT_CAINFO, nil)
            try set(CURLOPT_CAPATH, nil)
        }
        try setProxy(proxy, tls)
        let requiresNames = (tls.verifiesHostName || !isSecure) && (proxy?.isSecure == true || reach?.dohURL != nil)
        if isSecure, PresentationGuard.isNeeded(for: member, tls, url) {
            try check(ccurlew_guard_presentation(raw, requiresNames, PresentationGuard.make), CURLOPT_SSL_CTX_FUNCTION)
        } else if requiresNames {
            try check(ccurlew_require_names(raw), CURLOPT_SSL_CTX_FUNCTION)
        }
    }

    /// Sets the options that few sessions have. Those of sockets are set when they are opened (``MultiMember/configure(_:for:)``).
    private func setReach(_ reach: ReachOptions, _ route: Route?) throws(OptionError) {
        switch reach.routing.unixSocket {
        case .path(let path)?: try set(CURLOPT_UNIX_SOCKET_PATH, path)
        case .abstract(let name)?: try set(CURLOPT_ABSTRACT_UNIX_SOCKET, name)
        case nil: break
        }
        if let route {
            try set(CURLOPT_CONNECT_TO, list: route.connectTo)
            if let entry = route.resolve { try set(CURLOPT_RESOLVE, list: entry) }
            alias = route.alias
        }
        if reach.ipVersion != .any { try set(CURLOPT_IPRESOLVE, reach.ipVersion == .v4 ? 1 : 2) }
        if let delay = reach.connectionAttemptDelay { try set(CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, delay.atLeastOneMillisecond) }
        if let ports = reach.localPorts {
            try set(CURLOPT_LOCALPORT, ports.lowerBound)
            try set(CURLOPT_LOCALPORTRANGE, ports.count)
        }
        if !reach.socket.sendsImmediately { try set(CURLOPT_TCP_NODELAY, false) }
        // Rejected where the system lacks it.
        if reach.socket.usesFastOpen { _ = ccurlew_set_long(raw, CURLOPT_TCP_FASTOPEN, 1) }
        guard let server = reach.dohURL else { return }
        try set(CURLOPT_DOH_URL, server)
        if !reach.dohVerifiesServer {
            try set(CURLOPT_DOH_SSL_VERIFYPEER, false)
            try set(CURLOPT_DOH_SSL_VERIFYHOST, 0)
        }
    }

    private func setCallbacks(for transfer: Transfer) throws(OptionError) {
        let context = borrowedPointer(to: transfer)
        // Removing "/../" would send a path other than the requested one.
        try set(CURLOPT_PATH_AS_IS, true)
        // libcurl reports a truncated coding as success, so Curlew decodes.
        try set(CURLOPT_HTTP_CONTENT_DECODING, false)
        try set(CURLOPT_WRITEFUNCTION, Transfer.writeCallback)
        try set(CURLOPT_WRITEDATA, pointer: context)
        try set(CURLOPT_HEADERFUNCTION, Transfer.headerCallback)
        try set(CURLOPT_HEADERDATA, pointer: context)
        try check(ccurlew_set_prereq_callback(raw, Transfer.prereqCallback), CURLOPT_PREREQFUNCTION)
        try set(CURLOPT_PREREQDATA, pointer: context)
    }

    private func setInterface(_ interface: String, isAddress: Bool) throws(OptionError) {
        let isComparedAsName = CurlInfo.current.reusesConnectionsOfAnyInterface
        if isComparedAsName, isAddress || if_nametoindex(interface) != 0 {
            try set(CURLOPT_INTERFACE, interface)
        } else {
            // Without the prefix, libcurl resolves a name that is not an interface's as a host name.
            try set(CURLOPT_INTERFACE, (isAddress ? "host!" : "if!") + interface)
            if isComparedAsName { try set(CURLOPT_FRESH_CONNECT, true) }
        }
    }

    /// Lets libcurl open a new connection, pool it, and send nothing.
    ///
    /// `CURLOPT_CONNECT_ONLY` doesn't pool. An upload that is to be resumed where it ends is refused by libcurl once it is connected, before
    /// it has created the request, and the connection is as good as before: 18 until 8.19, 43 since then (seen with 7.88.1 and 8.23).
    private func setConnectionOnly() throws(OptionError) {
        try set(CURLOPT_FRESH_CONNECT, true)
        try set(CURLOPT_UPLOAD, true)
        try set(CURLOPT_INFILESIZE_LARGE, offset: 1)
        try set(CURLOPT_RESUME_FROM_LARGE, offset: 1)
        try set(CURLOPT_READFUNCTION, Transfer.readCallback)
        try check(ccurlew_set_seek_callback(raw) { _, _, _ in CURL_SEEKFUNC_OK }, CURLOPT_SEEKFUNCTION)
    }

    private func setMethod(for transfer: Transfer) throws(OptionError) {
        let method = transfer.request.method
        switch (method, transfer.request.body) {
        case (.get, nil): break  // libcurl's own default
        case (.head, _): try set(CURLOPT_NOBODY, true)
        case (_, nil) where method.saysWhenEmpty:
            try set(CURLOPT_POST, true)
            try set(CURLOPT_POSTFIELDSIZE, 0)
            try set(CURLOPT_POSTFIELDS, pointer: UnsafeMutableRawPointer(mutating: emptyBody.utf8Start))
            try set(CURLOPT_CUSTOMREQUEST, method.rawValue)
        case (_, nil): try set(CURLOPT_CUSTOMREQUEST, method.rawValue)
        case (_, _?): try setBody(for: transfer)
        }
    }

    private func setBody(for transfer: Transfer) throws(OptionError) {
        let context = borrowedPointer(to: transfer)
        try set(CURLOPT_UPLOAD, true)
        try set(CURLOPT_CUSTOMREQUEST, transfer.request.method.rawValue)
        let hasTrailers = transfer.request.body?.hasTrailers == true
        try set(CURLOPT_INFILESIZE_LARGE, offset: hasTrailers ? -1 : transfer.exchange.bodyLength ?? -1)
        try set(CURLOPT_READFUNCTION, Transfer.readCallback)
        try set(CURLOPT_READDATA, pointer: context)
        try check(ccurlew_set_seek_callback(raw, Transfer.seekCallback), CURLOPT_SEEKFUNCTION)
        try set(CURLOPT_SEEKDATA, pointer: context)
        if hasTrailers {
            try check(ccurlew_set_trailer_callback(raw, Transfer.trailerCallback), CURLOPT_TRAILERFUNCTION)
            try set(CURLOPT_TRAILERDATA, pointer: context)
        }
        if transfer.mustNotStopAtErrors { try set(CURLOPT_KEEP_SENDING_ON_ERROR, true) }
    }

    private func setVersion(for transfer: Transfer) throws(OptionError) {
        let (curl, request) = (CurlInfo.current, transfer.request)
        switch request.prepared.options.httpVersion {
        case _ where transfer.exchange.alternative != nil, .http3Only: try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_3ONLY)
        // libcurl sends trailers over HTTP/1.1 only.
        case _ where request.authentication != nil || request.body?.hasTrailers == true, .http1:
            try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        case .http2PriorKnowledge where curl.supportsHTTP2:
            try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
            if !curl.canReusePriorKnowledge { try set(CURLOPT_FORBID_REUSE, true) }
        case .http3 where transfer.mayUseHTTP3: try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_3)
        // Without TLS it is HTTP/1.1 in any case, but libcurl 8.23 then doesn't reuse a connection on which nothing was received yet.
        case .automatic where !request.isSecure: try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        // It may take a connection from the transfers of a host that is known to speak HTTP/1.1, but must not block them over HTTP/2.
        case .automatic where transfer.group.sharing.isEnabled && request.mayPause && !transfer.loop.isApart(transfer):
            try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        case .automatic, .http2PriorKnowledge, .http3:
            let isRisky = request.body.map { ($0.length ?? .max) > Self.largestBodyForOldHTTP2 } ?? false
            let speaksHTTP2 = curl.supportsHTTP2 && (curl.hasReliableHTTP2 || !isRisky)
            try set(CURLOPT_HTTP_VERSION, speaksHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
        // CURLOPT_PIPEWAIT is not set: if the host turns out to speak HTTP/1.1, waiting transfers wait until the first one has completed,
        // while their connect timeout runs (seen with libcurl 8.23).
        }
    }

    private func setAuthentication(_ authentication: ConnectionAuthentication) throws(OptionError) {
        // libcurl counts the exchanges of an authentication as redirects, of which it follows no others here.
        try set(CURLOPT_MAXREDIRS, TransferState.maximumRequests)
        switch authentication {
        case .ntlm(let user, let password):
            // libcurl's CURLAUTH_ macros are casts to unsigned long, which Swift doesn't import.
            try set(CURLOPT_HTTPAUTH, 1 << 3)
            try set(CURLOPT_USERNAME, user)
            try set(CURLOPT_PASSWORD, password)
        case .negotiate:
            try set(CURLOPT_HTTPAUTH, 1 << 2)
            // libcurl authenticates only if a user name is set; its value is ignored.
            try set(CURLOPT_USERNAME, "")
            try set(CURLOPT_PASSWORD, "")
            // Before 8.20, libcurl may reuse such a connection for other users' requests (https://curl.se/docs/CVE-2026-5545.html). The
            // connection still stays open between the exchanges of one transfer.
            try set(CURLOPT_FORBID_REUSE, true)
        }
    }

    /// Sets `CURLOPT_HTTP_VERSION`, which takes a long; depending on libcurl's version, its values are macros or an enumeration.
    private func set(_ option: CURLoption, _ version: some BinaryInteger) throws(OptionError) {
        try set(option, Int(version))
    }

    private func setTLS(_ tls: TLSOptions, to url: String, for member: MultiMember) throws(OptionError) {
        try set(CURLOPT_SSLVERSION, tls.minimumVersion.libcurlMinimum | (tls.maximumVersion?.libcurlMaximum ?? 0))
        if !tls.verifiesCertificateChain { try set(CURLOPT_SSL_VERIFYPEER, false) }
        if !tls.verifiesHostName { try set(CURLOPT_SSL_VERIFYHOST, 0) }
        if tls.requiresStapledResponse { try set(CURLOPT_SSL_VERIFYSTATUS, true) }
        if let file = tls.revocationListFile { try set(CURLOPT_CRLFILE, file) }
        if !tls.publicKeyHashes.isEmpty {
            // Sorted, because libcurl compares this string when it looks for a connection to reuse.
            let pins = tls.publicKeyHashes.map { "sha256//" + $0.base64EncodedString() }.sorted()
            try set(CURLOPT_PINNEDPUBLICKEY, pins.joined(separator: ";"))
        }
        if let certificate = tls.clientCertificate, certificate.isFor(url) {
            try setClientCertificate(certificate.contents)
        } else if tls.trust != nil, let certificate = member.chosenCertificate(tls, url) {
            try setClientCertificate(certificate.contents)
        }
        try setAuthorities(tls)
    }

    /// Sets the authorities, in one of the forms in which libcurl combines sources: a blob replaces the file, but not the directory.
    private func setAuthorities(_ tls: TLSOptions) throws(OptionError) {
        switch tls.pinnedAuthorities.map({ AuthoritySource.data($0) }) ?? tls.authoritySource {
        case .system: try check(ccurlew_cache_default_authorities(raw, tls.usesEnvironment), CURLOPT_SSL_CTX_FUNCTION)
        case .systemDirectory(let directory, let others):
            try set(CURLOPT_CAPATH, directory)
            try set(CURLOPT_CAINFO_BLOB, blob: others)
        // Without a directory: otherwise the system's is trusted as well.
        case .data(let data):
            try set(CURLOPT_CAPATH, nil)
            try set(CURLOPT_CAINFO_BLOB, blob: data)
        case .file(let file):
            try set(CURLOPT_CAPATH, nil)
            try set(CURLOPT_CAINFO, file)
        case .unreadable(let reason): throw OptionError(CURLE_SSL_CACERT_BADFILE, CURLOPT_CAINFO, because: reason)
        }
    }

    private func setClientCertificate(_ contents: ClientCertificate.Contents) throws(OptionError) {
        try set(CURLOPT_SSLCERTTYPE, contents.form == .pem ? "PEM" : "P12")
        try set(contents.certificate, blob: CURLOPT_SSLCERT_BLOB, file: CURLOPT_SSLCERT)
        if let key = contents.key { try set(key, blob: CURLOPT_SSLKEY_BLOB, file: CURLOPT_SSLKEY) }
        // Without a password OpenSSL prompts for it on the terminal, which blocks the event loop.
        try set(CURLOPT_KEYPASSWD, contents.password ?? "")
    }

    private func set(_ source: ClientCertificate.Source, blob: CURLoption, file: CURLoption) throws(OptionError) {
        switch source {
        case .data(let data): try set(blob, blob: data)
        case .file(let path): try set(file, path)
        }
    }

    /// Sets the proxy, or disables proxies for all hosts. Always set, so that libcurl doesn't read the environment for each request.
    private func setProxy(_ proxy: Proxy?, _ tls: TLSOptions) throws(OptionError) {
        try set(CURLOPT_PROXY, proxy?.url)
        try set(CURLOPT_NOPROXY, proxy == nil ? "*" : "")
        if proxy?.isSecure == true {
            try setProxyTLS(tls)
        } else {
            try set(CURLOPT_PROXY_CAINFO, nil)
            try set(CURLOPT_PROXY_CAPATH, nil)
        }
    }

    /// Sets up TLS to the proxy itself with the session's authorities, revocation lists and versions. The proxy is always verified, even if
    /// hosts are not.
    private func setProxyTLS(_ tls: TLSOptions) throws(OptionError) {
        try set(CURLOPT_PROXY_SSLVERSION, tls.minimumVersion.libcurlMinimum | (tls.maximumVersion?.libcurlMaximum ?? 0))
        if let file = tls.revocationListFile { try set(CURLOPT_PROXY_CRLFILE, file) }
        switch tls.authoritySource {
        case .system:
            if let file = tls.systemAuthorityFile { try set(CURLOPT_PROXY_CAINFO, file) }
            if let directory = tls.systemAuthorityDirectory { try set(CURLOPT_PROXY_CAPATH, directory) }
        case .systemDirectory(let directory, let others):
            try set(CURLOPT_PROXY_CAPATH, directory)
            try set(CURLOPT_PROXY_CAINFO_BLOB, blob: others)
        case .data(let data):
            try set(CURLOPT_PROXY_CAPATH, nil)
            try set(CURLOPT_PROXY_CAINFO_BLOB, blob: data)
        case .file(let file):
            try set(CURLOPT_PROXY_CAPATH, nil)
            try set(CURLOPT_PROXY_CAINFO, file)
        case .unreadable(let reason): throw OptionError(CURLE_SSL_CACERT_BADFILE, CURLOPT_PROXY_CAINFO, because: reason)
        }
    }
}

extension String? {
    /// Converts an address from libcurl; `nil` for an unknown one.
    static func address(_ bytes: UnsafePointer<CChar>?) -> String? {
        bytes.flatMap { $0.pointee == 0 ? nil : String(cString: $0) }
    }
}

extension HTTPMethod {
    /// Whether requests without content send `Content-Length: 0` (RFC 9110, section 8.6).
    var saysWhenEmpty: Bool { self == .post || self == .put || self == .patch }
}

extension TransferRequest {
    /// Whether only the URL and the header fields have to be set for the request, apart from its options.
    fileprivate var isOrdinary: Bool {
        body == nil && method == .get && authentication == nil && !mayPause && !expectsLargeBody && !opensConnectionOnly && signing == nil
    }

    /// The body's length according to `Content-Length`: a stream of unknown length is sent with the length that its sender declares.
    var announcedLength: Int64? {
        guard let value = headers["Content-Length"], let length = Int64(value), length >= 0 else { return nil }
        return length
    }
}

/// Static, because libcurl doesn't copy `CURLOPT_POSTFIELDS`.
private let emptyBody: StaticString = ""

extension TLSOptions.Version {
    fileprivate var libcurlMinimum: Int {
        switch self {
        case .v1_0: Int(CURL_SSLVERSION_TLSv1_0)
        case .v1_1: Int(CURL_SSLVERSION_TLSv1_1)
        case .v1_2: Int(CURL_SSLVERSION_TLSv1_2)
        case .v1_3: Int(CURL_SSLVERSION_TLSv1_3)
        }
    }

    /// The maximum version occupies the upper 16 bits of the same option.
    fileprivate var libcurlMaximum: Int { libcurlMinimum << 16 }
}
