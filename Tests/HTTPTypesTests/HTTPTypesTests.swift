// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
import CurlewHTTPTypes
import Testing
#endif
