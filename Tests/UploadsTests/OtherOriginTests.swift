// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import CurlewUploads
import Testing

/// A2.2: uploads that a server has named at another origin.
@Suite(.timeLimit(.minutes(2))) struct OtherOriginTests {
    /// What an upload is begun with.
    enum Credentials: CaseIterable, Sendable {
        case field, signer, sessionSigner, interceptor, sessionAdapter
    }

    struct Signer: ExchangeSigner {
        let identity: String
        func sign(_ exchange: SignableExchange) -> HTTPHeaders { ["X-Signature": identity] }
    }

    private struct Tagging: RequestInterceptor {
        let tag: String

        func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
            var request = urlRequest
            request.setValue(tag, forHTTPHeaderField: "Authorization")
            return request
        }

        func should(
            _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
        ) { completion(false, 0) }
    }

    private let directory: TemporaryDirectory
    private let file: URL
    /// Where uploads are begun.
    private let server: TusServer
    /// Where they are; after half of the file the line is cut.
    private let other: TusServer

    init() async throws {
        directory = try TemporaryDirectory()
        file = try directory.write(GeneratedBody().data(count: 100_000), to: "file")
        var settings = TusServer.Settings()
        settings.cuts = [50_000]
        let other = try TusServer(settings)
        for _ in 1...2 {
            _ = try await makeManager().request(
                other.url(), method: .post, headers: ["Tus-Resumable": "1.0.0", "Upload-Length": "100000"]
            ).serializingData().value
        }
        settings.cuts = []
        settings.location = { [url = other.url("")] in url + $0 }
        (self.other, server) = (other, try TusServer(settings))
    }

    private func upload(_ credentials: Credentials, _ name: String, retries: UInt = 0) -> ResumableUpload {
        var options = ResumableUpload.Options()
        options.retryPolicy = RetryPolicy(retryLimit: retries, exponentialBackoffScale: 0.001)
        options.allowsOtherOrigins = true
        switch credentials {
        case .field: options.headers = ["Authorization": "Bearer \(name)"]
        case .signer: options.requestOptions.signer = Signer(identity: name)
        case .interceptor: options.requestOptions.interceptor = Tagging(tag: name)
        case .sessionSigner, .sessionAdapter: break
        }
        let manager = makeManager { if credentials == .sessionSigner { $0.signer = Signer(identity: name) } }
        if credentials == .sessionAdapter { manager.adapter = Tagging(tag: name) }
        return manager.resumableUpload(file, to: server.url(), options: options)
    }

    // A2.2
    @Test("an upload is continued by a later one with the same credentials only", arguments: Credentials.allCases, [true, false])
    func continued(credentials: Credentials, isSame: Bool) async throws {
        await #expect(throws: CurlewError.self) { try await upload(credentials, "one").response }
        let response = try await upload(credentials, isSame ? "one" : "two").response
        #expect(response.resumed == (isSame ? 50_000 : 0))
        #expect(response.uploadURL?.absoluteString == other.url(isSame ? "/files/1" : "/files/2"))
        #expect(server.methods() == ["OPTIONS", "POST", "OPTIONS"] + (isSame ? [] : ["OPTIONS", "POST"]))
        #expect(other.methods() == ["POST", "POST", "PATCH", "HEAD", "PATCH"])
        #expect(other.uploads[isSame ? "/files/1" : "/files/2"].map { GeneratedBody().matches($0.bytes) } == true)
        #expect(other.entries.allSatisfy { $0.header("Authorization") == nil && $0.header("X-Signature") == nil })
        #expect(server.entries.allSatisfy { $0.header("Authorization") != nil || $0.header("X-Signature") != nil })
    }

    // A2.2
    @Test("a cut is followed by the rest, without a question to the endpoint") func cut() async throws {
        #expect(try await upload(.field, "one", retries: 1).response.resumed == 0)
        #expect(other.received == 100_000)
        #expect(server.methods() == ["OPTIONS", "POST"])
        #expect(other.methods() == ["POST", "POST", "PATCH", "HEAD", "PATCH"])
    }

    // A2.2
    @Test(
        "an endpoint that does not know OPTIONS shows the credentials too, and one that refuses them ends the upload",
        arguments: [405, 401])
    func refused(status: Int) async throws {
        var settings = TusServer.Settings()
        settings.location = { [url = other.url("")] in url + $0 }
        settings.override = { entry, number in entry.method == "OPTIONS" && number > 1 ? .status(status) : nil }
        let server = try TusServer(settings)
        var options = ResumableUpload.Options()
        options.retryPolicy = RetryPolicy(retryLimit: 0)
        options.allowsOtherOrigins = true
        options.headers = ["Authorization": "Bearer one"]
        await #expect(throws: CurlewError.self) {
            try await makeManager().resumableUpload(file, to: server.url(), options: options).response
        }
        let upload = makeManager().resumableUpload(file, to: server.url(), options: options)
        if status == 405 {
            #expect(try await upload.response.resumed == 50_000)
        } else {
            let error = await #expect(throws: ResumableUploadError.self) { try await upload.response }
            #expect(error?.statusCode == 401)
            // It can still be continued.
            #expect(try contents(of: directory).count == 2)
        }
        #expect(server.methods() == ["OPTIONS", "POST", "OPTIONS"])
    }

    // A2.2
    @Test(
        "an upload is removed with the same credentials, and with others the removal fails", arguments: Credentials.allCases, [true, false])
    func removal(credentials: Credentials, isSame: Bool) async throws {
        await #expect(throws: CurlewError.self) { try await upload(credentials, "one").response }
        let later = upload(credentials, isSame ? "one" : "two")
        if isSame {
            try await later.cancel(removingFromServer: true)
        } else {
            let error = await #expect(throws: ResumableUploadError.self) { try await later.cancel(removingFromServer: true) }
            #expect(error?.kind == .otherCredentials)
            #expect(error?.subject == other.url("/files/1"))
        }
        #expect(other.uploads.keys.sorted() == (isSame ? ["/files/2"] : ["/files/1", "/files/2"]))
        #expect(other.methods() == ["POST", "POST", "PATCH", "HEAD"] + (isSame ? ["DELETE"] : []))
        #expect(try contents(of: directory).count == (isSame ? 1 : 2))
    }

    // A2.2
    @Test(
        "it gets neither the fields that the options call sensitive nor a signature, also not those of the session",
        arguments: [true, false])
    func secrets(isOfSession: Bool) async throws {
        var redirects = RedirectPolicy()
        redirects.sensitiveHeaders = ["X-Internal"]
        var options = ResumableUpload.Options()
        options.retryPolicy = RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0.001)
        options.allowsOtherOrigins = true
        options.requestOptions.redirects = redirects
        options.headers = ["X-Plain": "1"]
        if !isOfSession {
            options.headers.update(name: "X-Internal", value: "secret")
            options.headers.update(name: "Authorization", value: "Bearer secret")
            options.headers.update(name: "Cookie", value: "id=secret")
            options.requestOptions.signer = Signer(identity: "secret")
        }
        let manager = makeManager { configuration in
            configuration.signer = Signer(identity: "secret")
            // The options' policy counts in place of the session's.
            configuration.redirects.forwardedHeaders = ["X-Internal"]
            if isOfSession {
                configuration.headers.update(name: "X-Internal", value: "secret")
                configuration.headers.update(name: "Authorization", value: "Bearer secret")
            }
        }
        _ = try await manager.resumableUpload(file, to: server.url(), options: options).response
        let foreign = other.entries.dropFirst(2)
        #expect(foreign.map(\.method) == ["PATCH", "HEAD", "PATCH"])
        for name in ["X-Internal", "Authorization", "X-Signature"] + (isOfSession ? [] : ["Cookie"]) {
            #expect(foreign.allSatisfy { $0.header(name) == nil })
            #expect(server.entries.allSatisfy { $0.header(name)?.hasSuffix("secret") == true })
        }
        #expect(foreign.allSatisfy { $0.header("X-Plain") == "1" && $0.header("Tus-Resumable") == "1.0.0" })
    }
}
