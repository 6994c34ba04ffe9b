// leafcutter keys: who belongs to a fleet. An authority's folder is made, hosts join with a token, keys are listed,
// replaced and revoked.
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "actors/system.hpp"
#include "actors/trust/enrolment.hpp"
#include "actors/trust/join_token.hpp"
#include "actors/trust/key_folder.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "commands/interrupts.hpp"
#include "commands/keys.hpp"
#include "commands/output.hpp"
#include "protocols/event.hpp"
#include "scenarios/verdict.hpp"

namespace leafcutter::commands {
namespace {

using actors::KeyFolder;

struct KeysCommand {
  std::string keys, name = "coordinator", coordinator, token_file, listen = "127.0.0.1:4732", which, overlap = "1h";
  std::string format = "text";
  bool client = false;
  unsigned joins = 0;
};

int keys_init(const KeysCommand& options) {
  const auto folder = KeyFolder::init(options.keys, options.name, std::chrono::system_clock::now());
  if (!folder) return fail(folder.error());
  std::fprintf(stderr, "keys: a new authority in %s; who can read that folder can do anything in the fleet\n",
               options.keys.c_str());
  return 0;
}

int keys_token(const KeysCommand& options) {
  if (const auto named = actors::check_peer_name(options.name); !named) return fail(named.error());
  const auto folder = KeyFolder::open(options.keys);
  if (!folder) return fail(folder.error());
  const auto authority = folder->authority_key();
  if (!authority) return fail(authority.error());
  const actors::Identity identity{options.client ? actors::Role::client : actors::Role::node, options.name};
  const auto token = actors::new_join_token(identity, actors::fingerprint(**authority));
  if (!token) return fail(token.error());
  const auto now = actors::seconds_of(std::chrono::system_clock::now());
  const auto noted =
      folder->change_roll([&](actors::Roll& roll) { return actors::add_ticket(roll, identity, token->hash(), now); });
  if (!noted) return fail(noted.error());
  std::fprintf(stderr, "keys: a join token for %s, good once and for 15 minutes; it is not shown again\n",
               actors::describe(identity).c_str());
  return print(actors::to_text(*token) + "\n") ? 0 : scenarios::exit_codes::inconclusive;
}

/// From a file or standard input: an argument could be read by everybody on the host.
base::Expected<std::string> read_token_text(const std::string& path) {
  const base::UniqueFd file(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file)
    return base::Error{base::ErrorCode::bad_input, base::system_error("cannot read " + path, errno).message, {}};
  std::string text;
  char bytes[1024];
  while (text.size() <= 4096) {
    const auto count = ::read(file.get(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::system_error("cannot read " + path, errno);
    if (count == 0) break;
    text.append(bytes, static_cast<std::size_t>(count));
  }
  return text;
}

base::Expected<actors::EnrolmentDoor> enrolment_door(const std::string& address) {
  const auto parsed = actors::parse_host_port(address);
  if (!parsed) return parsed.error();
  return actors::EnrolmentDoor{parsed->host, parsed->port};
}

int keys_join(const KeysCommand& options) {
  const auto door = enrolment_door(options.coordinator);
  if (!door) return fail(door.error());
  const auto text = read_token_text(options.token_file);
  if (!text) return fail(text.error());
  const auto token = actors::join_token_from(*text);
  if (!token) return fail(token.error());
  const auto folder = actors::join(*door, *token, options.keys);
  if (!folder) return fail(folder.error());
  std::fprintf(stderr, "keys: this host is %s; its key is in %s\n", actors::describe(token->identity).c_str(),
               options.keys.c_str());
  return 0;
}

int keys_serve(const KeysCommand& options) {
  const auto address = actors::parse_host_port(options.listen);
  if (!address) return fail(address.error());
  const auto folder = KeyFolder::open(options.keys);
  if (!folder) return fail(folder.error());
  Interrupts interrupts;
  actors::EnrolmentServer::Options server_options;
  server_options.host = address->host;
  server_options.port = address->port;
  server_options.on_news = [](const std::string& news) { std::fprintf(stderr, "keys: %s\n", news.c_str()); };
  const auto server = actors::EnrolmentServer::start(*folder, std::move(server_options));
  if (!server) return fail(server.error());
  std::fprintf(stderr, "keys: hosts join at %s:%u\n", address->host.c_str(), static_cast<unsigned>((*server)->port()));
  while (!interrupts.wait(std::chrono::milliseconds(100)))
    if (options.joins != 0 && (*server)->counters().enrolled >= options.joins) break;
  const auto seen = (*server)->counters();
  std::fprintf(stderr, "keys: %llu enrolled, %llu refused, %llu connections that came to nothing\n",
               static_cast<unsigned long long>(seen.enrolled), static_cast<unsigned long long>(seen.refused),
               static_cast<unsigned long long>(seen.broken));
  return 0;
}

std::string date_of(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

int keys_list(const KeysCommand& options) {
  const auto folder = KeyFolder::open(options.keys);
  if (!folder) return fail(folder.error());
  const auto roll = folder->roll();
  if (!roll) return fail(roll.error());
  const auto now = actors::seconds_of(std::chrono::system_clock::now());
  auto document = protocols::Value::array();
  std::string text = fmt::format("{:<12} {:<24} {:<16} {:<9} {}\n", "role", "name", "key", "standing", "until (UTC)");
  for (const auto& key : roll->keys) {
    const auto until = key.ends != 0 ? std::min(key.ends, key.expires) : key.expires;
    text += fmt::format("{:<12} {:<24} {:<16} {:<9} {}\n", actors::role_name(key.identity.role), key.identity.name,
                        key.key.substr(0, 16), actors::standing(key, now), date_of(until));
    document.push_back({{"role", actors::role_name(key.identity.role)},
                        {"name", key.identity.name},
                        {"key", key.key},
                        {"standing", actors::standing(key, now)},
                        {"until", until}});
  }
  return print(options.format == "json" ? document.dump(2) + "\n" : text) ? 0 : scenarios::exit_codes::inconclusive;
}

int keys_rotate(const KeysCommand& options) {
  const auto folder = KeyFolder::open(options.keys);
  if (!folder) return fail(folder.error());
  const auto overlap = base::parse_duration(options.overlap);
  if (!overlap) return fail(overlap.error());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*overlap);
  base::Status rotated = base::ok();
  if (folder->is_authority()) {
    rotated = actors::rotate_own(*folder, seconds, std::chrono::system_clock::now());
  } else {
    if (options.coordinator.empty())
      return fail({base::ErrorCode::bad_input,
                   options.keys + " is not an authority's folder: the authority has to certify the new key; "
                                  "--coordinator HOST:PORT says where it answers",
                   {}});
    const auto door = enrolment_door(options.coordinator);
    if (!door) return fail(door.error());
    rotated = actors::rotate_identity(*door, *folder, seconds);
  }
  if (!rotated) return fail(rotated.error());
  std::fprintf(stderr, "keys: a new key is in %s; the old one stays good for %s\n", options.keys.c_str(),
               options.overlap.c_str());
  return 0;
}

int keys_revoke(const KeysCommand& options) {
  const auto folder = KeyFolder::open(options.keys);
  if (!folder) return fail(folder.error());
  const auto now = actors::seconds_of(std::chrono::system_clock::now());
  actors::EnrolledKey revoked;
  const auto changed = folder->change_roll([&](actors::Roll& roll) -> base::Status {
    auto one = actors::revoke(roll, options.which, now);
    if (!one) return one.error();
    revoked = std::move(*one);
    return base::ok();
  });
  if (!changed) return fail(changed.error());
  std::fprintf(stderr, "keys: %s of %s is revoked\n", revoked.key.substr(0, 16).c_str(),
               actors::describe(revoked.identity).c_str());
  return 0;
}

}  // namespace

void add_keys(CLI::App& app, Context& context) {
  auto* keys = app.add_subcommand("keys", "who belongs to a fleet: make, enrol, replace and revoke keys");
  keys->require_subcommand(1);
  auto options = std::make_shared<KeysCommand>();
  const auto add = [&](const char* name, const char* about, int (*run)(const KeysCommand&)) {
    auto* command = keys->add_subcommand(name, about);
    command->add_option("--keys", options->keys, "folder of the keys")->required()->type_name("DIR");
    command->callback([options, &context, run] { context.exit_code = run(*options); });
    return command;
  };
  add("init", "make an authority, with keys for campaigns and a coordinator", keys_init)
      ->add_option("--name", options->name, "the coordinator's name")
      ->capture_default_str();
  auto* token = add("token", "print a join token for a host, good once and for 15 minutes", keys_token);
  token->add_option("NAME", options->name, "what the node will be called")->required();
  token->add_flag("--client", options->client, "for somebody who submits and watches, instead of a node");
  auto* join = add("join", "enrol this host with a join token", keys_join);
  join->add_option("--coordinator", options->coordinator, "where an authority answers")
      ->required()
      ->type_name("HOST:PORT");
  join->add_option("--token-file", options->token_file, "file with the token; - is standard input")
      ->required()
      ->type_name("FILE");
  auto* serve = add("serve", "answer hosts that join or replace their keys", keys_serve);
  serve->add_option("--listen", options->listen)->capture_default_str()->type_name("HOST:PORT");
  serve->add_option("--joins", options->joins, "end after so many keys were enrolled (default: when interrupted)");
  add("list", "print the keys of the fleet and what each is good for", keys_list)
      ->add_option("--format", options->format)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  auto* rotate = add("rotate", "replace this folder's own key; the old one stays good for a while", keys_rotate);
  rotate->add_option("--coordinator", options->coordinator, "where an authority answers")->type_name("HOST:PORT");
  rotate->add_option("--overlap", options->overlap, "how long the old key stays good")
      ->capture_default_str()
      ->type_name("DURATION");
  add("revoke", "revoke one key; its sessions end at once", keys_revoke)
      ->add_option("KEY", options->which, "a name, or the first digits of a key")
      ->required();
}

}  // namespace leafcutter::commands
