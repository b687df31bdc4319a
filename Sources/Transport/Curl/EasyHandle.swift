// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// A libcurl easy handle and the memory that it refers to.
///
/// For the event loop's thread only, and deliberately not Sendable.
final class EasyHandle {
    /// The properties that the next request has to share for the handle's options to be reused. A class, so that comparing retains one
    /// reference.
    final class OrdinarySetup {
        let options: PreparedOptions
        let isSecure: Bool
        let proxy: Proxy?
        let headers: HTTPHeaders
        /// Set again for a request that has another.
        var connectTimeoutMilliseconds: Int

        init(options: PreparedOptions, connectTimeoutMilliseconds: Int, isSecure: Bool, proxy: Proxy?, headers: HTTPHeaders) {
            self.options = options
            self.connectTimeoutMilliseconds = connectTimeoutMilliseconds
            self.isSecure = isSecure
            self.proxy = proxy
            self.headers = headers
        }
    }

    let pointer: OpaquePointer
    private let errorBuffer: UnsafeMutablePointer<CChar>
    private var headerList: UnsafeMutablePointer<curl_slist>?
    /// The other lists that options refer to.
    private var lists: [UnsafeMutablePointer<curl_slist>] = []
    /// A name made for several addresses, and the host's name, which takes its place in messages.
    var alias: (name: String, host: String)?
    /// The URL that the handle is set to, and libcurl's parsed form. Otherwise libcurl parses the URL and serializes it again for each
    /// transfer, a tenth of the cost of a small request.
    private var url: String?
    private var urlParts: OpaquePointer?
    /// What the handle's options are set for, if for an ordinary request.
    var ordinarySetup: OrdinarySetup?
    /// Whether a transfer has run on the handle, which may have left state in it.
    var wasUsed = false

    /// Creates a handle; `nil` if libcurl is out of memory.
    init?() {
        guard let pointer = curl_easy_init() else { return nil }
        self.pointer = OpaquePointer(pointer)
        errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        curl_easy_cleanup(raw)
        curl_slist_free_all(headerList)
        for list in lists { curl_slist_free_all(list) }
        curl_url_cleanup(urlParts)
        errorBuffer.deallocate()
    }

    var raw: UnsafeMutableRawPointer { UnsafeMutableRawPointer(pointer) }

    /// Resets all options; connections and caches are kept.
    func reset() {
        curl_easy_reset(raw)
        curl_slist_free_all(headerList)
        headerList = nil
        if !lists.isEmpty {
            for list in lists { curl_slist_free_all(list) }
            lists.removeAll()
        }
        alias = nil
        url = nil
        ordinarySetup = nil
        forgetMessage()
    }

    /// Leaves the TLS sessions that the handle shares; it gets others with its next options.
    func leaveShare() {
        reset()
        _ = ccurlew_set_pointer(raw, CURLOPT_SHARE, nil)
    }

    func forgetMessage() {
        errorBuffer[0] = 0
    }

    /// libcurl's message about its last error.
    func message(for code: CURLcode) -> String {
        if errorBuffer[0] != 0 {
            let message = Self.withoutProxyUser(String(cString: errorBuffer))
            return alias.map { message.replacingScalars($0.name, with: $0.host) } ?? message
        }
        return String(cString: curl_easy_strerror(code))
    }

    /// Removes the user from messages in which libcurl quotes an unparsable proxy, password included. The proxy need not be a URL.
    private static func withoutProxyUser(_ message: String) -> String {
        guard message.contains("proxy"), let quote = message.unicodeScalars.firstIndex(of: "'"),
            let at = message.unicodeScalars.lastIndex(of: "@"), quote < at
        else {
            return message
        }
        return String(message[...quote] + message.suffix(afterScalarAt: at))
    }

    // MARK: Options, one function for each kind of argument

    func set(_ option: CURLoption, _ value: Int) throws(OptionError) {
        try check(ccurlew_set_long(raw, option, value), option)
    }

    func set(_ option: CURLoption, _ value: Bool) throws(OptionError) {
        try check(ccurlew_set_long(raw, option, value ? 1 : 0), option)
    }

    func set(_ option: CURLoption, offset value: Int64) throws(OptionError) {
        try check(ccurlew_set_offset(raw, option, curl_off_t(value)), option)
    }

    func set(_ option: CURLoption, _ value: String?) throws(OptionError) {
        // The pointer need not outlive the call: libcurl copies CURLOPT strings.
        try check(ccurlew_set_string(raw, option, value), option)
    }

    func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer?) throws(OptionError) {
        try check(ccurlew_set_pointer(raw, option, value), option)
    }

    func set(_ option: CURLoption, blob value: Data) throws(OptionError) {
        let code = value.withUnsafeBytes { ccurlew_set_blob(raw, option, $0.baseAddress, $0.count) }
        try check(code, option)
    }

    func set(_ option: CURLoption, _ callback: @escaping ccurlew_data_callback) throws(OptionError) {
        try check(ccurlew_set_data_callback(raw, option, callback), option)
    }

    func setErrorBuffer() throws(OptionError) {
        try set(CURLOPT_ERRORBUFFER, pointer: errorBuffer)
    }

    /// Sets the URL; its path is sent unchanged.
    func setURL(_ newURL: String) throws(OptionError) {
        guard newURL != url else { return }
        url = nil
        // Without parsed parts, libcurl parses the URL itself and reports an error in it when the transfer starts.
        try set(CURLOPT_CURLU, pointer: parts(of: newURL).map { UnsafeMutableRawPointer($0) })
        // Also needed with the parts: libcurl reads it when it retries on a new connection.
        try set(CURLOPT_URL, newURL)
        url = newURL
    }

    private func parts(of url: String) -> OpaquePointer? {
        if urlParts == nil { urlParts = curl_url() }
        // libcurl would resolve a URL without a scheme against the previous one, and send the request there.
        guard let urlParts, url.hasHTTPScheme else { return nil }
        // The flags that libcurl itself uses for `CURLOPT_URL`.
        let flags = UInt32(CURLU_PATH_AS_IS | CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME)
        return curl_url_set(urlParts, CURLUPART_URL, url, flags) == CURLUE_OK ? urlParts : nil
    }

    /// Sets the request's header fields; the handle owns the list.
    func setHeaders(_ lines: some Sequence<String>) throws(OptionError) {
        curl_slist_free_all(headerList)
        headerList = nil
        for line in lines {
            guard let longer = curl_slist_append(headerList, line) else { throw OptionError(CURLE_OUT_OF_MEMORY, CURLOPT_HTTPHEADER) }
            headerList = longer
        }
        try set(CURLOPT_HTTPHEADER, pointer: headerList)
    }

    /// Sets an option to a list of one element; the handle owns the list.
    func set(_ option: CURLoption, list element: String) throws(OptionError) {
        guard let list = curl_slist_append(nil, element) else { throw OptionError(CURLE_OUT_OF_MEMORY, option) }
        lists.append(list)
        try set(option, pointer: list)
    }

    func check(_ code: CURLcode, _ option: CURLoption) throws(OptionError) {
        guard code == CURLE_OK else { throw OptionError(code, option) }
    }
}

extension String {
    /// Whether the text begins with `http://` or `https://`, case-insensitively.
    fileprivate var hasHTTPScheme: Bool {
        var text = self
        return text.withUTF8 { bytes in
            guard bytes.count > 7, bytes.prefix(4).elementsEqual("http".utf8, by: { $0.asciiLowercased == $1 }) else { return false }
            return bytes.dropFirst(bytes[4].asciiLowercased == UInt8(ascii: "s") ? 5 : 4).starts(with: "://".utf8)
        }
    }
}

/// An option that libcurl rejected, or that can't be set.
struct OptionError: Error {
    let code: CURLcode
    let option: CURLoption
    /// Why a file of authorities, which libcurl was not given, can't be read.
    private let reason: String?

    init(_ code: CURLcode, _ option: CURLoption, because reason: String? = nil) {
        self.code = code
        self.option = option
        self.reason = reason
    }

    /// The kind of failure that the rejected option stands for.
    var kind: TransferFailure.Kind {
        switch option {
        case CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB: .clientCertificate
        default: .configuration
        }
    }

    /// The option's number and libcurl's reason, or why the option could not be set.
    var message: String {
        if let reason { return "The file of authorities can't be read: \(reason)" }
        return "libcurl rejected option \(option.rawValue): \(String(cString: curl_easy_strerror(code)))"
    }
}
