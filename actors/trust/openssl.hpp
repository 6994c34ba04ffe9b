// OpenSSL's objects with an owner, and what it has to say about a failure.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "base/error.hpp"

namespace leafcutter::actors {

template <auto free_function>
struct OpensslDeleter {
  template <class T>
  void operator()(T* object) const {
    free_function(object);
  }
};

using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, OpensslDeleter<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, OpensslDeleter<X509_REQ_free>>;
using BioPtr = std::unique_ptr<BIO, OpensslDeleter<BIO_free_all>>;
using TlsContextPtr = std::unique_ptr<SSL_CTX, OpensslDeleter<SSL_CTX_free>>;
using TlsPtr = std::unique_ptr<SSL, OpensslDeleter<SSL_free>>;

/// `what` and the first reason in this thread's error queue, which is empty afterwards.
base::Error openssl_error(const std::string& what, base::ErrorCode code = base::ErrorCode::internal);

/// All that was written to a memory BIO.
std::string bytes_of(BIO& memory);

/// A memory BIO that reads `bytes`, which must outlive it.
BioPtr reader_of(std::string_view bytes);

}  // namespace leafcutter::actors
