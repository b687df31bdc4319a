// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

// On Linux the XML parser is a module of its own, which links libxml2: nothing below this layer does.
#if canImport(FoundationXML)
@_exported import FoundationXML
#endif
