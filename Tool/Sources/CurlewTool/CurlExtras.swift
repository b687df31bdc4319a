// SPDX-License-Identifier: Apache-2.0
import Curlew

/// What a command of curl asks for and no option of ours says.
struct CurlExtras: Sendable {
    /// Where the body goes.
    struct Output: Sendable, Equatable {
        /// `nil` for standard output.
        var path: String?
        var folder: String?
        /// Whether the response names the file, by `Content-Disposition`.
        var takesSuggestedName = false
        var createsFolders = false
        var mode: mode_t = 0o644
        /// Whether an existing file is replaced; with `false` another name is chosen, or with ``takesSuggestedName`` it is an error.
        var replacesFile = true
        var skipsExisting = false
        var removesOnError = false
        var keepsTime = false
        /// The first byte that is missing; −1 for the size of the file.
        var offset: Int64 = 0
    }

    /// What `--retry` and its companions say.
    struct Retries: Sendable, Equatable {
        var limit: UInt = 0
        var delay: Duration?
        /// How long after the beginning another attempt may begin.
        var window: Duration?
        var repeatsRefused = false
        var repeatsAllErrors = false
    }

    /// The slowest transfer that is allowed, in bytes a second, and for how long.
    struct SlowLimit: Sendable, Equatable {
        var bytesPerSecond: Int64 = 0
        var duration = Duration.seconds(30)
    }

    /// What `--aws-sigv4` says; what is missing is part of the host's name.
    struct Signature: Sendable, Equatable {
        let region: String?
        let service: String?
    }

    var output = Output()
    var identity: ClientIdentity?
    var signature: Signature?
    var retries = Retries()
    /// Whether the body of a response with an error's status is not written.
    var hidesErrors = false
    /// Whether a response with an error's status is a failure.
    var failsOnErrors = false
    /// Whether the heads are written before the body, as they were received.
    var writesHeads = false
    /// Where the heads are written, too.
    var headFile: String?
    /// Whether an earlier URL of the operation writes heads to the same file.
    var appendsHeads = false
    var isVerbose = false
    var isSilent = false
    var showsErrors = true
    var writeOut: CurlWriteOut?
    /// Whether cookies are kept, from which files, and where they are written.
    var keepsCookies = false
    var cookieFiles: [String] = []
    var cookieJar: String?
    var dropsSessionCookies = false
    var etagFile: String?
    var condition: CurlTimeCondition?
    var rate: Int64?
    var slowLimit = SlowLimit()
    var maximumSize: Int64?
    var trustsLocations = false
    /// The schemes of the challenges that are answered, as ``URLProtectionSpace`` has them; `nil` for all.
    var challenges: Set<String>?
    var netrcIsOptional = false
    var netrcFile: String?
    /// Files that have to be readable before anything is sent.
    var files: [String] = []
    /// The bytes of the request's body, if they are not what a word can say.
    var body: Data?
    /// The number of the URL, from 0.
    var number = 0
    /// Changes of the session's settings.
    var settings: [@Sendable (inout SessionConfiguration) -> Void] = []
}

extension CurlExtras.Output {
    /// The path with the folder.
    func resolved(_ path: String) -> String { folder.map { path.hasBytePrefix("/") ? path : "\($0)/\(path)" } ?? path }
}
