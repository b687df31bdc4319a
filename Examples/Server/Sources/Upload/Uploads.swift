// SPDX-License-Identifier: Apache-2.0
import Curlew

/// What the server has received.
struct Receipt: Decodable, Sendable {
    let received: Int64
    let announced: Int64?
}

// snippet: upload
struct Uploads {
    let url: String
    let manager: SessionManager

    /// Sends a sequence while it is made. The closure makes it again for a retry.
    func send(_ records: @escaping @Sendable () -> AsyncStream<Data>) async throws -> Receipt {
        try await manager.upload(records, to: "\(url)/records", method: .put, interceptor: RetryPolicy())
            .validate().serializingDecodable(Receipt.self).value
    }

    /// Sends a form, with files that are read while they are sent.
    func send(_ photos: [URL], title: String) async throws -> Receipt {
        let form = MultipartFormData()
        form.append(Data(title.utf8), withName: "title")
        for photo in photos { form.append(photo, withName: "photos") }
        return try await manager.upload(form, to: "\(url)/photos", options: RequestOptions(deadline: .seconds(60)))
            .uploadProgress(queue: .global()) { print("\(Int($0.fractionCompleted * 100)) %") }
            .validate().serializingDecodable(Receipt.self).value
    }
}
// end
