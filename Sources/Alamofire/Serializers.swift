// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding

// The built-in serializers with translated errors, for programs that call them directly. Sessions translate the errors of their own uses.

extension DataResponseSerializer {
    fileprivate func translated() -> DataResponseSerializer {
        DataResponseSerializer { request, response, data, error in
            serializeResponse(request, response, data, error).mapError { AFError.translate($0) }
        }
    }
}

extension DownloadResponseSerializer {
    /// Creates a serializer that applies another one to the file's content.
    fileprivate init(translating content: DataResponseSerializer<Value>) {
        let serializer = DownloadResponseSerializer(of: content)
        self.init { request, response, fileURL, error in
            serializer.serializeResponse(request, response, fileURL, error).mapError { AFError.translate($0) }
        }
    }
}

extension DataRequest {
    /// Returns a serializer for the body: fails if there is none, except for the statuses 204 and 205, which give empty data.
    public static func dataResponseSerializer() -> DataResponseSerializer<Data> {
        CurlewCore.Serializers.data.translated()
    }

    /// Returns a serializer for the body as text, in the given encoding, else in that of the response.
    public static func stringResponseSerializer(encoding: String.Encoding? = nil) -> DataResponseSerializer<String> {
        CurlewCore.Serializers.string(encoding).translated()
    }

    /// Returns a serializer that decodes the body with `JSONSerialization` (RFC 8259); `NSNull` for the statuses 204 and 205.
    public static func jsonResponseSerializer(
        options: JSONSerialization.ReadingOptions = .allowFragments
    ) -> DataResponseSerializer<Any> {
        CurlewCore.Serializers.json(options).translated()
    }

    /// Returns a serializer that decodes the body with `PropertyListSerialization`; `NSNull` for the statuses 204 and 205.
    public static func propertyListResponseSerializer(
        options: PropertyListSerialization.ReadOptions = []
    ) -> DataResponseSerializer<Any> {
        CurlewCore.Serializers.propertyList(options).translated()
    }
}

extension DownloadRequest {
    /// Returns a serializer for the file's content.
    public static func dataResponseSerializer() -> DownloadResponseSerializer<Data> {
        DownloadResponseSerializer(translating: CurlewCore.Serializers.data)
    }

    /// Returns a serializer for the file's content as text, in the given encoding, else in that of the response.
    public static func stringResponseSerializer(encoding: String.Encoding? = nil) -> DownloadResponseSerializer<String> {
        DownloadResponseSerializer(translating: CurlewCore.Serializers.string(encoding))
    }

    /// Returns a serializer that decodes the file's content with `JSONSerialization` (RFC 8259).
    public static func jsonResponseSerializer(
        options: JSONSerialization.ReadingOptions = .allowFragments
    ) -> DownloadResponseSerializer<Any> {
        DownloadResponseSerializer(translating: CurlewCore.Serializers.json(options))
    }

    /// Returns a serializer that decodes the file's content with `PropertyListSerialization`.
    public static func propertyListResponseSerializer(
        options: PropertyListSerialization.ReadOptions = []
    ) -> DownloadResponseSerializer<Any> {
        DownloadResponseSerializer(translating: CurlewCore.Serializers.propertyList(options))
    }
}

extension Request {
    /// Returns the body, or why there is none; empty for the statuses 204 and 205. A given error becomes the failure.
    public static func serializeResponseData(response: HTTPURLResponse?, data: Data?, error: (any Error)?) -> Result<Data> {
        DataRequest.dataResponseSerializer().serializeResponse(nil, response, data, error)
    }

    /// Returns the body as text, in the given encoding, else in that of the response. A given error becomes the
    /// failure.
    public static func serializeResponseString(
        encoding: String.Encoding?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
    ) -> Result<String> {
        DataRequest.stringResponseSerializer(encoding: encoding).serializeResponse(nil, response, data, error)
    }

    /// Decodes the body with `JSONSerialization` (RFC 8259); `NSNull` for the statuses 204 and 205. A given error becomes the failure.
    public static func serializeResponseJSON(
        options: JSONSerialization.ReadingOptions, response: HTTPURLResponse?, data: Data?, error: (any Error)?
    ) -> Result<Any> {
        DataRequest.jsonResponseSerializer(options: options).serializeResponse(nil, response, data, error)
    }

    /// Decodes the body with `PropertyListSerialization`; `NSNull` for the statuses 204 and 205. A given error becomes the failure.
    public static func serializeResponsePropertyList(
        options: PropertyListSerialization.ReadOptions, response: HTTPURLResponse?, data: Data?, error: (any Error)?
    ) -> Result<Any> {
        DataRequest.propertyListResponseSerializer(options: options).serializeResponse(nil, response, data, error)
    }
}
