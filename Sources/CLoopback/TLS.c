/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's functions are looked up, as in CCurlew: its opaque types are void here, its macros the calls that they stand for. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "CLoopback.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All functions by name and type, available in OpenSSL 1.1.1 and later. */
#define FUNCTIONS(each)                                                                                                                     \
    each(TLS_server_method, const void *, (void))                                                                                           \
    each(SSL_CTX_new, void *, (const void *method))                                                                                         \
    each(SSL_CTX_free, void, (void *context))                                                                                               \
    each(SSL_CTX_ctrl, long, (void *context, int command, long number, void *pointer))                                                      \
    each(SSL_CTX_use_certificate, int, (void *context, void *x509))                                                                         \
    each(SSL_CTX_use_PrivateKey, int, (void *context, void *key))                                                                           \
    each(SSL_CTX_set_verify, void, (void *context, int mode, void *callback))                                                               \
    each(SSL_CTX_set_session_id_context, int, (void *context, const unsigned char *bytes, unsigned int length))                             \
    each(SSL_CTX_get_cert_store, void *, (const void *context))                                                                             \
    each(SSL_CTX_add_client_CA, int, (void *context, void *x509))                                                                           \
    each(SSL_new, void *, (void *context))                                                                                                  \
    each(SSL_free, void, (void *ssl))                                                                                                       \
    each(SSL_set_fd, int, (void *ssl, int descriptor))                                                                                      \
    each(SSL_accept, int, (void *ssl))                                                                                                      \
    each(SSL_read, int, (void *ssl, void *bytes, int length))                                                                               \
    each(SSL_write, int, (void *ssl, const void *bytes, int length))                                                                        \
    each(SSL_shutdown, int, (void *ssl))                                                                                                    \
    each(SSL_get_error, int, (const void *ssl, int result))                                                                                 \
    each(SSL_get_version, const char *, (const void *ssl))                                                                                  \
    each(SSL_session_reused, int, (const void *ssl))                                                                                        \
    each(SSL_get_servername, const char *, (const void *ssl, int type))                                                                     \
    each(EVP_PKEY_CTX_new_id, void *, (int id, void *engine))                                                                               \
    each(EVP_PKEY_CTX_free, void, (void *context))                                                                                          \
    each(EVP_PKEY_keygen_init, int, (void *context))                                                                                        \
    each(EVP_PKEY_CTX_ctrl_str, int, (void *context, const char *type, const char *value))                                                  \
    each(EVP_PKEY_keygen, int, (void *context, void **key))                                                                                 \
    each(EVP_PKEY_free, void, (void *key))                                                                                                  \
    each(EVP_sha256, const void *, (void))                                                                                                  \
    each(X509_new, void *, (void))                                                                                                          \
    each(X509_free, void, (void *x509))                                                                                                     \
    each(X509_set_version, int, (void *x509, long version))                                                                                 \
    each(X509_get_serialNumber, void *, (void *x509))                                                                                       \
    each(ASN1_INTEGER_set_uint64, int, (void *integer, unsigned long long value))                                                           \
    each(X509_getm_notBefore, void *, (const void *x509))                                                                                   \
    each(X509_getm_notAfter, void *, (const void *x509))                                                                                    \
    each(X509_gmtime_adj, void *, (void *time, long seconds))                                                                               \
    each(X509_set_pubkey, int, (void *x509, void *key))                                                                                     \
    each(X509_get_subject_name, void *, (const void *x509))                                                                                 \
    each(X509_set_issuer_name, int, (void *x509, const void *name))                                                                         \
    each(X509_NAME_add_entry_by_txt, int, (void *name, const char *field, int type, const unsigned char *bytes, int length, int location,   \
                                           int set))                                                                                        \
    each(X509_NAME_get_text_by_NID, int, (void *name, int nid, char *buffer, int length))                                                   \
    each(X509V3_set_ctx, void, (void *context, void *issuer, void *subject, void *request, void *crl, int flags))                           \
    each(X509V3_EXT_conf_nid, void *, (void *config, void *context, int nid, const char *value))                                            \
    each(X509_add_ext, int, (void *x509, void *extension, int location))                                                                    \
    each(X509_EXTENSION_free, void, (void *extension))                                                                                      \
    each(X509_sign, int, (void *x509, void *key, const void *digest))                                                                       \
    each(X509_STORE_add_cert, int, (void *store, void *x509))                                                                               \
    each(BIO_new, void *, (const void *type))                                                                                               \
    each(BIO_s_mem, const void *, (void))                                                                                                   \
    each(BIO_new_mem_buf, void *, (const void *bytes, int length))                                                                          \
    each(BIO_ctrl, long, (void *bio, int command, long number, void *pointer))                                                              \
    each(BIO_free, int, (void *bio))                                                                                                        \
    each(PEM_write_bio_X509, int, (void *bio, void *x509))                                                                                  \
    each(PEM_write_bio_PrivateKey, int, (void *bio, void *key, const void *cipher, void *phrase, int length, void *callback, void *user))   \
    each(PEM_read_bio_X509, void *, (void *bio, void **x509, void *callback, void *user))                                                   \
    each(PEM_read_bio_PrivateKey, void *, (void *bio, void **key, void *callback, void *user))                                              \
    each(ERR_clear_error, void, (void))                                                                                                     \
    each(ERR_get_error, unsigned long, (void))                                                                                              \
    each(ERR_reason_error_string, const char *, (unsigned long code))

#define DECLARE(name, result, arguments) static result(*openssl_##name) arguments;
FUNCTIONS(DECLARE)
static void *(*openssl_peer_certificate)(const void *ssl);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_all;

static void *open_library(const char *const *names) {
    for(; *names; names++) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_GLOBAL);
        if(library)
            return library;
    }
    return NULL;
}

static void find_all(void) {
    /* libcurl's, if the process has one: two copies of OpenSSL in one process share no state. */
    void *place = RTLD_DEFAULT;
    if(!dlsym(place, "TLS_server_method")) {
        static const char *const names[] = {"libssl.so.3", "libssl.so.1.1", "libssl.so", "libssl.3.dylib", "libssl.dylib", NULL};
        place = open_library(names);
        if(!place)
            return;
    }
    has_all = true;
    /* A library's handle finds the symbols of those that it needs, libcrypto's among them. */
#define FIND(name, result, arguments)                                                                                                       \
    *(void **)&openssl_##name = dlsym(place, #name);                                                                                        \
    has_all = has_all && openssl_##name;
    FUNCTIONS(FIND)
    /* Renamed in OpenSSL 3. */
    *(void **)&openssl_peer_certificate = dlsym(place, "SSL_get1_peer_certificate");
    if(!openssl_peer_certificate)
        *(void **)&openssl_peer_certificate = dlsym(place, "SSL_get_peer_certificate");
    has_all = has_all && openssl_peer_certificate;
}

bool cloopback_has_openssl(void) {
    pthread_once(&once, find_all);
    return has_all;
}

static const char *const missing = "OpenSSL 1.1.1 or later is not there";

/* --- PEM --- */

static void *read_certificate(void *bio) { return openssl_PEM_read_bio_X509(bio, NULL, NULL, NULL); }

static void *parse_certificate(const char *pem) {
    void *bio = pem ? openssl_BIO_new_mem_buf(pem, -1) : NULL;
    void *x509 = bio ? read_certificate(bio) : NULL;
    openssl_BIO_free(bio);
    return x509;
}

static void *parse_key(const char *pem) {
    void *bio = pem ? openssl_BIO_new_mem_buf(pem, -1) : NULL;
    void *key = bio ? openssl_PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    openssl_BIO_free(bio);
    return key;
}

/* Returns the text of a memory BIO, which is freed. */
static char *text_of(void *bio, bool is_written) {
    enum { info = 3 };
    char *bytes = NULL;
    long length = is_written ? openssl_BIO_ctrl(bio, info, 0, &bytes) : 0;
    char *text = length > 0 ? malloc((size_t)length + 1) : NULL;
    if(text) {
        memcpy(text, bytes, (size_t)length);
        text[length] = 0;
    }
    openssl_BIO_free(bio);
    return text;
}

/* --- Certificates --- */

static void *make_key(void) {
    enum { ec = 408 };
    void *key = NULL;
    void *context = openssl_EVP_PKEY_CTX_new_id(ec, NULL);
    if(context && openssl_EVP_PKEY_keygen_init(context) == 1 &&
       openssl_EVP_PKEY_CTX_ctrl_str(context, "ec_paramgen_curve", "P-256") == 1)
        openssl_EVP_PKEY_keygen(context, &key);
    openssl_EVP_PKEY_CTX_free(context);
    return key;
}

static bool add_extension(void *x509, void *issuer, int nid, const char *value) {
    /* X509V3_CTX, of which OpenSSL 3 has 64 bytes. */
    unsigned char context[512] = {0};
    openssl_X509V3_set_ctx(context, issuer, x509, NULL, NULL, 0);
    void *extension = openssl_X509V3_EXT_conf_nid(NULL, context, nid, value);
    bool is_added = extension && openssl_X509_add_ext(x509, extension, -1) == 1;
    openssl_X509_EXTENSION_free(extension);
    return is_added;
}

static bool fill(void *x509, void *key, void *issuer, const struct cloopback_certificate *certificate) {
    enum { v3 = 2, utf8 = 0x1000, key_identifier = 82, key_usage = 83, names = 85, constraints = 87, authority = 90, usage = 126 };
    void *subject = openssl_X509_get_subject_name(x509);
    return openssl_X509_set_version(x509, v3) == 1 &&
           openssl_ASN1_INTEGER_set_uint64(openssl_X509_get_serialNumber(x509), certificate->serial) == 1 &&
           openssl_X509_gmtime_adj(openssl_X509_getm_notBefore(x509), certificate->valid_from) &&
           openssl_X509_gmtime_adj(openssl_X509_getm_notAfter(x509), certificate->valid_until) &&
           openssl_X509_NAME_add_entry_by_txt(subject, "CN", utf8, (const unsigned char *)certificate->common_name, -1, -1, 0) == 1 &&
           openssl_X509_set_issuer_name(x509, openssl_X509_get_subject_name(issuer ? issuer : x509)) == 1 &&
           openssl_X509_set_pubkey(x509, key) == 1 && add_extension(x509, issuer ? issuer : x509, key_identifier, "hash") &&
           add_extension(x509, issuer ? issuer : x509, authority, "keyid") &&
           add_extension(x509, issuer, constraints, certificate->is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
           add_extension(x509, issuer, key_usage,
                         certificate->is_authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
           (!certificate->usage || add_extension(x509, issuer, usage, certificate->usage)) &&
           (!certificate->names || add_extension(x509, issuer, names, certificate->names));
}

const char *cloopback_make_certificate(const struct cloopback_certificate *certificate, char **certificate_pem, char **key_pem) {
    if(!cloopback_has_openssl())
        return missing;
    const char *reason = NULL;
    void *issuer = parse_certificate(certificate->issuer);
    void *issuer_key = parse_key(certificate->issuer_key);
    void *key = make_key();
    void *x509 = openssl_X509_new();
    if(certificate->issuer && (!issuer || !issuer_key))
        reason = "the issuer is no certificate with its key";
    else if(!key || !x509 || !fill(x509, key, issuer, certificate))
        reason = "the certificate could not be made: a name may be invalid";
    else if(openssl_X509_sign(x509, issuer_key ? issuer_key : key, openssl_EVP_sha256()) <= 0)
        reason = "the certificate could not be signed";
    if(!reason) {
        void *bio = openssl_BIO_new(openssl_BIO_s_mem());
        *certificate_pem = text_of(bio, bio && openssl_PEM_write_bio_X509(bio, x509) == 1);
        bio = openssl_BIO_new(openssl_BIO_s_mem());
        *key_pem = text_of(bio, bio && openssl_PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
        if(!*certificate_pem || !*key_pem) {
            free(*certificate_pem);
            free(*key_pem);
            reason = "out of memory";
        }
    }
    openssl_X509_free(x509);
    openssl_EVP_PKEY_free(key);
    openssl_X509_free(issuer);
    openssl_EVP_PKEY_free(issuer_key);
    openssl_ERR_clear_error();
    return reason;
}

/* --- TLS --- */

/* Sets the chain: the first certificate is the server's own. */
static bool use_chain(void *context, const char *pem) {
    enum { extra_chain_certificate = 14 };
    void *bio = openssl_BIO_new_mem_buf(pem, -1);
    void *x509 = bio ? read_certificate(bio) : NULL;
    bool is_used = x509 && openssl_SSL_CTX_use_certificate(context, x509) == 1;
    openssl_X509_free(x509);
    while(is_used && (x509 = read_certificate(bio)) != NULL) {
        /* Takes the ownership if it succeeds. */
        is_used = openssl_SSL_CTX_ctrl(context, extra_chain_certificate, 0, x509) == 1;
        if(!is_used)
            openssl_X509_free(x509);
    }
    openssl_BIO_free(bio);
    return is_used;
}

static bool require_client(void *context, const char *pem, bool may_refuse) {
    enum { peer = 1, fail_without = 2 };
    void *x509 = parse_certificate(pem);
    bool is_used = x509 && openssl_X509_STORE_add_cert(openssl_SSL_CTX_get_cert_store(context), x509) == 1 &&
                   openssl_SSL_CTX_add_client_CA(context, x509) == 1;
    openssl_X509_free(x509);
    if(is_used)
        openssl_SSL_CTX_set_verify(context, may_refuse ? peer : peer | fail_without, NULL);
    return is_used;
}

void *cloopback_tls_new(const struct cloopback_tls *settings, const char **reason) {
    enum { set_minimum = 123, set_maximum = 124 };
    *reason = missing;
    if(!cloopback_has_openssl())
        return NULL;
    *reason = "out of memory";
    void *context = openssl_SSL_CTX_new(openssl_TLS_server_method());
    if(!context)
        return NULL;
    void *key = parse_key(settings->key);
    *reason = NULL;
    if(!use_chain(context, settings->chain))
        *reason = "the chain has no certificate";
    else if(!key || openssl_SSL_CTX_use_PrivateKey(context, key) != 1)
        *reason = "the key is not that of the certificate";
    else if(settings->client_authority && !require_client(context, settings->client_authority, settings->client_may_refuse))
        *reason = "the authority of clients is no certificate";
    openssl_EVP_PKEY_free(key);
    if(settings->minimum_version)
        openssl_SSL_CTX_ctrl(context, set_minimum, settings->minimum_version, NULL);
    if(settings->maximum_version)
        openssl_SSL_CTX_ctrl(context, set_maximum, settings->maximum_version, NULL);
    openssl_SSL_CTX_set_session_id_context(context, (const unsigned char *)"loopback", 8);
    openssl_ERR_clear_error();
    if(!*reason)
        return context;
    openssl_SSL_CTX_free(context);
    return NULL;
}

void cloopback_tls_free(void *context) { openssl_SSL_CTX_free(context); }

void *cloopback_tls_accept(void *context, int socket, char *reason, size_t length) {
    /* OpenSSL writes without MSG_NOSIGNAL. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    openssl_ERR_clear_error();
    void *ssl = openssl_SSL_new(context);
    if(ssl && openssl_SSL_set_fd(ssl, socket) == 1 && openssl_SSL_accept(ssl) == 1)
        return ssl;
    const char *text = openssl_ERR_reason_error_string(openssl_ERR_get_error());
    snprintf(reason, length, "%s", text ? text : "the client has closed the connection");
    openssl_SSL_free(ssl);
    openssl_ERR_clear_error();
    return NULL;
}

ssize_t cloopback_tls_read(void *session, void *bytes, size_t length) {
    enum { zero_return = 6 };
    openssl_ERR_clear_error();
    int count = openssl_SSL_read(session, bytes, length > 1 << 30 ? 1 << 30 : (int)length);
    if(count > 0)
        return count;
    return openssl_SSL_get_error(session, count) == zero_return ? 0 : -1;
}

ssize_t cloopback_tls_write(void *session, const void *bytes, size_t length) {
    if(length == 0)
        return 0;
    openssl_ERR_clear_error();
    int count = openssl_SSL_write(session, bytes, length > 1 << 30 ? 1 << 30 : (int)length);
    return count > 0 ? count : -1;
}

void cloopback_tls_close(void *session) {
    openssl_ERR_clear_error();
    openssl_SSL_shutdown(session);
}

void cloopback_tls_end(void *session) {
    openssl_SSL_free(session);
    openssl_ERR_clear_error();
}

const char *cloopback_tls_version(const void *session) { return openssl_SSL_get_version(session); }

bool cloopback_tls_is_resumed(const void *session) { return openssl_SSL_session_reused(session) == 1; }

const char *cloopback_tls_server_name(const void *session) { return openssl_SSL_get_servername(session, 0); }

bool cloopback_tls_client_name(const void *session, char *name, size_t length) {
    enum { common_name = 13 };
    void *x509 = openssl_peer_certificate(session);
    bool has_name = x509 && openssl_X509_NAME_get_text_by_NID(openssl_X509_get_subject_name(x509), common_name, name, (int)length) >= 0;
    openssl_X509_free(x509);
    return has_name;
}
