// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// Which error is delivered where.
@Suite(.timeLimit(.minutes(2))) struct ErrorDeliveryTests {
    private let server: LoopbackServer
    private let manager = SessionManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func closedPort() throws -> Int {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        return server.port
    }

    @Test("an invalid URL gives invalidURL, without a request, with empty data") func invalidURL() async {
        let response = await manager.request("http://localhost/äöü").plainResponse()
        #expect((response.error as? AFError)?.urlConvertible as? String == "http://localhost/äöü")
        #expect(response.request == nil && response.response == nil)
        #expect(response.data == Data())
    }

    @Test("each kind of request gives invalidURL") func invalidURLOfEachKind() async {
        let download = await manager.download("x y").plainResponse()
        #expect((download.error as? AFError)?.isInvalidURLError == true)
        for request in [
            manager.upload(Data(), to: "x y"), manager.upload(URL(fileURLWithPath: "/x"), to: "x y"),
            manager.upload(InputStream(data: Data()), to: "x y"),
        ] {
            #expect((await request.plainResponse().error as? AFError)?.isInvalidURLError == true)
        }
    }

    @Test("parameters that can't be encoded give parameterEncodingFailed") func parameterEncoding() async {
        let request = manager.request(server.url("/echo"), method: .post, parameters: ["a": Date()], encoding: JSONEncoding.default)
        guard case .parameterEncodingFailed(.jsonEncodingFailed)? = await request.plainResponse().error as? AFError else {
            Issue.record("not parameterEncodingFailed")
            return
        }
    }

    @Test("validation gives responseValidationFailed") func validation() async {
        let status = await manager.request(server.url("/status/418")).validate().plainResponse()
        #expect((status.error as? AFError)?.responseCode == 418)
        let type = await manager.request(server.url("/json")).validate(contentType: ["text/html"]).plainResponse()
        #expect((type.error as? AFError)?.responseContentType == "application/json")
        #expect((type.error as? AFError)?.acceptableContentTypes == ["text/html"])
        let download = await manager.download(server.url("/status/404")).validate().plainResponse()
        #expect((download.error as? AFError)?.responseCode == 404)
    }

    @Test("serializers give responseSerializationFailed, with the cause") func serialization() async {
        let json: DataResponse<Any> = await outcome {
            manager.request(server.url("/bytes/10")).responseJSON(queue: callbackQueue, completionHandler: $0)
        }
        #expect((json.result.error as? AFError)?.isResponseSerializationError == true)
        #expect((json.error as? AFError)?.underlyingError is CocoaError)
        let list: DownloadResponse<Any> = await outcome {
            manager.download(server.url("/headers")).responsePropertyList(queue: callbackQueue, completionHandler: $0)
        }
        #expect((list.error as? AFError)?.isResponseSerializationError == true)
    }

    @Test("awaiting a value, a result or a response gives the same error") func awaited() async throws {
        let request = manager.request(server.url("/status/418")).validate()
        await #expect { try await request.serializingData().value } throws: { ($0 as? AFError)?.responseCode == 418 }
        #expect((await request.serializingString().result.error as? AFError)?.responseCode == 418)
        #expect((await request.serializingData().response.error as? AFError)?.responseCode == 418)
        let download = manager.download(server.url("/status/404")).validate()
        await #expect { try await download.serializingURL().value } throws: { ($0 as? AFError)?.responseCode == 404 }
        #expect((await download.serializingData().result.error as? AFError)?.responseCode == 404)
        let unreachable = manager.request("http://127.0.0.1:\(try closedPort())/")
        await #expect { try await unreachable.serializingData().value } throws: { ($0 as? URLError)?.code == .cannotConnectToHost }
    }

    @Test("a failed connection is a URLError, with Curlew's error underlying") func transport() async throws {
        let response = await manager.request("http://127.0.0.1:\(try closedPort())/").plainResponse()
        let error = try #require(response.error as? URLError)
        #expect(error.code == .cannotConnectToHost)
        #expect((response.error as NSError?)?.domain == NSURLErrorDomain)
        guard case .transferFailed(let failure)? = error.userInfo[NSUnderlyingErrorKey] as? CurlewError else {
            Issue.record("no underlying CurlewError")
            return
        }
        #expect(failure.kind == .connect)
    }

    @Test("a cancelled request gives URLError.cancelled, also from its task's delegate") func cancellation() async {
        let request = manager.request(server.url("/silent"))
        request.cancel()
        let response = await request.plainResponse()
        #expect((response.error as? URLError)?.code == .cancelled)
        #expect((request.delegate.error as? URLError)?.code == .cancelled)
    }

    @Test("errors thrown by the program's code are delivered unchanged") func ownErrors() async {
        final class Refusing: RequestAdapter {
            func adapt(_ urlRequest: URLRequest) throws -> URLRequest { throw AFError.invalidURL(url: "mine") }
        }
        let adapted = SessionManager()
        adapted.adapter = Refusing()
        let refused = await adapted.request(server.url("/json")).plainResponse()
        #expect((refused.error as? AFError)?.urlConvertible as? String == "mine")
        let response = await manager.request(server.url("/json")).validate { _, _, _ in .failure(TestError("mine")) }.plainResponse()
        #expect(response.error as? TestError == TestError("mine"))
        let serializer = DataResponseSerializer<Int> { _, _, _, _ in .failure(TestError("mine")) }
        let serialized: DataResponse<Int> = await outcome {
            manager.request(server.url("/json"))
                .response(queue: callbackQueue, responseSerializer: serializer, completionHandler: $0)
        }
        #expect(serialized.error as? TestError == TestError("mine"))
    }

    @Test("a retrier receives Alamofire's errors, and is not called for a cancelled task") func retrier() async {
        final class Asked: RequestRetrier, @unchecked Sendable {
            var errors: [Error] = []
            func should(_ manager: SessionManager, retry request: Request, with error: Error, completion: @escaping RequestRetryCompletion)
            {
                errors.append(error)
                completion(false, 0)
            }
        }
        let asked = Asked()
        manager.retrier = asked
        _ = await manager.request(server.url("/status/500")).validate().plainResponse()
        #expect((asked.errors.first as? AFError)?.responseCode == 500)
        let request = manager.request(server.url("/silent"))
        request.task?.cancel()
        _ = await request.plainResponse()
        #expect(asked.errors.count == 1)
    }

    @Test("Curlew's own retriers handle the errors of such a session") func retryPolicy() async throws {
        let manager = SessionManager()
        manager.retrier = RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0)
        let request = manager.request(server.url("/cut-body"))
        #expect(await request.plainResponse().error is URLError)
        #expect(request.retryCount == 1)
    }

    @Test("a manager with a SessionConfiguration delivers the same errors") func ownConfiguration() async {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = callbackQueue
        let manager = SessionManager(configuration: configuration)
        let response: DefaultDataResponse = await outcome {
            manager.request(server.url("/status/500")).validate().response(completionHandler: $0)
        }
        #expect((response.error as? AFError)?.responseCode == 500)
    }

    @Test("the default manager delivers the same errors") func defaultManager() async {
        #expect((await Alamofire.request("x y").plainResponse().error as? AFError)?.isInvalidURLError == true)
    }
}
