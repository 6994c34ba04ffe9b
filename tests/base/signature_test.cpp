#include "base/signature.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/folder.hpp"

namespace leafcutter::base {
namespace {

/// RFC 8032, 7.1, test 2, as PKCS #8: another implementation's key and signature.
constexpr auto rfc_key =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n-----END PRIVATE "
    "KEY-----\n";
constexpr auto rfc_public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
constexpr auto rfc_signature =
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb0"
    "0d"
    "291612bb0c00";

TEST(Signature, IsThatOfTheStandard) {
  const auto key = SigningKey::from_pem(rfc_key);
  if (!key) GTEST_FAIL() << key.error().text();
  EXPECT_EQ(to_hex(key->public_key()), rfc_public);
  EXPECT_EQ(to_hex(key->sign("\x72")), rfc_signature);
  EXPECT_TRUE(verify_signature(key->public_key(), "\x72", from_hex(rfc_signature)));
}

TEST(Signature, AnyChangeIsSeen) {
  const auto key = *SigningKey::generate(), other = *SigningKey::generate();
  const std::string message = "a message";
  const auto signature = key.sign(message);
  EXPECT_TRUE(verify_signature(key.public_key(), message, signature));
  EXPECT_FALSE(verify_signature(other.public_key(), message, signature));
  EXPECT_FALSE(verify_signature(key.public_key(), "a massage", signature));
  EXPECT_FALSE(verify_signature(key.public_key(), message, signature.substr(1)));
  EXPECT_FALSE(verify_signature("", message, signature));
  for (std::size_t i = 0; i < signature.size(); ++i) {
    auto changed = signature;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(verify_signature(key.public_key(), message, changed)) << i;
  }
}

TEST(Signature, KeysAreKeptFromOthers) {
  const tests::Folder folder;
  const auto key = *SigningKey::generate();
  const auto path = folder / "k.pem";
  ASSERT_TRUE(key.save(path));
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  EXPECT_EQ(SigningKey::load(path)->public_key(), key.public_key());
  EXPECT_EQ(key.save(path).error().code, ErrorCode::conflict);
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  EXPECT_NE(SigningKey::load(path).error().message.find("chmod 600"), std::string::npos);
  EXPECT_EQ(SigningKey::from_pem("nonsense").error().code, ErrorCode::bad_input);
}

TEST(Signature, APublicKeyIsReadInEitherForm) {
  const auto key = *SigningKey::from_pem(rfc_key);
  EXPECT_EQ(*read_public_key(std::string(rfc_public) + "\n"), key.public_key());
  EXPECT_EQ(*read_public_key(key.pem()), key.public_key());
  EXPECT_EQ(
      *read_public_key("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n"
                       "-----END PUBLIC KEY-----\n"),
      key.public_key());
  EXPECT_FALSE(read_public_key("abcd"));
  EXPECT_EQ(from_hex("0g"), "");
}

}  // namespace
}  // namespace leafcutter::base
