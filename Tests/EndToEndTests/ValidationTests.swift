// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct ValidationTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("a status outside 200 to 299 fails, with the body available", arguments: [400, 404, 500, 599])
    func status(_ status: Int) async throws {
        let response = await manager.request(server.url("/status/\(status)")).validate().serializingData().response
        #expect(response.error?.unacceptableStatus == status)
        #expect(response.data == Data("\(status)".utf8))
        #expect(response.response?.statusCode == status)
    }

    @Test("without validation every status is a success") func noValidation() async throws {
        let response = await manager.request(server.url("/status/404")).serializingString().response
        #expect(response.value == "404")
    }

    @Test("the accepted statuses can be chosen") func acceptedStatuses() async throws {
        let accepted = await manager.request(server.url("/status/418")).validate(statusCode: [418]).serializingData().response
        #expect(accepted.error == nil)
        let refused = await manager.request(server.url("/status/200")).validate(statusCode: 400...499).serializingData().response
        #expect(refused.error?.unacceptableStatus == 200)
    }

    @Test("the content type is compared") func contentType() async throws {
        let url = server.url("/json")
        for accepted in [["application/json"], ["*/json"], ["application/*"], ["text/html", "APPLICATION/JSON"], ["*/*"]] {
            let response = await manager.request(url).validate(contentType: accepted).serializingData().response
            #expect(response.error == nil, "\(accepted)")
        }
        let refused = await manager.request(url).validate(contentType: ["text/html"]).serializingData().response
        guard case .unacceptableContentType(let acceptable, let actual) = refused.error?.validationFailure else {
            Issue.record("\(String(describing: refused.error))")
            return
        }
        #expect(acceptable == ["text/html"])
        #expect(actual == "application/json")
    }

    @Test("the request's Accept header decides by default") func acceptHeader() async throws {
        let url = server.url("/json")
        let accepted = await manager.request(url, headers: ["Accept": "application/json;q=0.5"]).validate().serializingData().response
        #expect(accepted.error == nil)
        let refused = await manager.request(url, headers: ["Accept": "image/*"]).validate().serializingData().response
        #expect(refused.error?.validationFailure != nil)
    }

    @Test("a custom validation sees request, response and body") func custom() async throws {
        let seen = Log<String>()
        let response = await manager.request(server.url("/bytes/10")).validate { request, response, data in
            seen.append("\(request?.url?.path ?? "") \(response.statusCode) \(data?.count ?? -1)")
            return .failure(TestError("not good"))
        }.serializingData().response
        #expect(response.error as? TestError == TestError("not good"))
        #expect(seen.elements == ["/bytes/10 200 10"])
    }

    @Test("validations run in order, and the first failure counts") func order() async throws {
        let order = Log<Int>()
        let response = await manager.request(server.url("/status/200"))
            .validate { _, _, _ in
                order.append(1)
                return .success
            }
            .validate { _, _, _ in
                order.append(2)
                return .failure(TestError("second"))
            }
            .validate { _, _, _ in
                order.append(3)
                return .failure(TestError("third"))
            }
            .validate(statusCode: [500])
            .serializingData().response
        #expect(response.error as? TestError == TestError("second"))
        #expect(order.elements == [1, 2])
    }

    @Test("a failed transfer is not validated") func transferFailure() async throws {
        let asked = Log<Void>()
        let response = await manager.request(server.url("/cut-body")).validate { _, _, _ in
            asked.append(())
            return .success
        }.serializingData().response
        #expect(response.error?.transferFailure?.kind == .connectionLost)
        #expect(asked.count == 0)
    }

    @Test("a rejected download is not moved to its destination") func rejectedDownload() async throws {
        let directory = try TemporaryDirectory()
        let response = await manager.download(server.url("/status/404"), to: directory.file("page")).validate().serializingURL().response
        #expect(response.error?.unacceptableStatus == 404)
        #expect(try contents(of: directory) == [])
    }

    @Test("a download's validation reads the file") func downloadFile() async throws {
        let directory = try TemporaryDirectory()
        let sizes = Log<Int>()
        let response = await manager.download(server.url("/bytes/100000"), to: directory.file("file"))
            .validate { _, _, temporaryURL, _ in
                sizes.append(temporaryURL.flatMap { try? Data(contentsOf: $0) }?.count ?? -1)
                return .failure(TestError("refused"))
            }.serializingURL().response
        #expect(response.error as? TestError == TestError("refused"))
        #expect(sizes.elements == [100_000])
        #expect(try contents(of: directory) == [])
    }
}
