// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
@_exported import CurlewCore
@_exported import HTTPTypes
#endif
