// Counts how often each site of a leaf is visited and says which planned faults strike at a visit; keeps each fault's
// lifecycle (armed, fired with evidence, undone) in the trace. Thread-safe: proxies and supervisors share one book.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/observe/recorder.hpp"
#include "scenarios/plan.hpp"

namespace leafcutter::node {

using scenarios::Fault;
using scenarios::Site;

class SiteBook {
 public:
  struct Strike {
    std::size_t index = 0;  ///< of the fault in the plan
    Fault fault;
  };
  struct Visit {
    std::uint32_t occurrence = 0;  ///< counts from 1
    std::vector<Strike> strikes;   ///< in plan order; usually empty
  };

  /// What visits of one kind come to, known beforehand: for callers that make many of them.
  class Standing {
   private:
    friend class SiteBook;
    struct Chosen {
      std::size_t fault = 0;
      bool counted = false;  ///< the last visit, by the fault's aim
    };
    std::uint32_t* count_ = nullptr;  ///< of the site; null: at none
    std::vector<Chosen> chosen_;      ///< the faults that may strike at such a visit
  };

  SiteBook(scenarios::Plan plan, Recorder& recorder);

  /// Records `fault.armed` for every planned fault. Call before any service is started.
  void arm();

  /// Something reached this site: counts it and says what strikes. The caller carries the strikes out and reports back.
  Visit visit(const Site& site);

  /// A connection of a link, or a message on it. `message` counts from 1 within the connection; 0: the connection is
  /// opened, and the visit's occurrence is its number.
  struct LinkFacts {
    std::uint64_t connection = 0, message = 0;
  };
  Visit visit(const Site& site, const LinkFacts& facts);

  /// The connection is open, and the event that the rule `index` of its link waited for was seen: counts it, and says
  /// whether it is struck. Nothing: it is not, or was counted before.
  std::optional<Strike> visit_open(std::size_t index, std::uint64_t connection);

  /// The connection is over: nothing is asked about it any more.
  void forget_connection(const std::string& lane, std::uint64_t connection);

  /// A system call of `lane` in `family`. `resource` is its site's class; empty: it is at no site, which only an aim
  /// can select. `data_folder` is what aims of this lane are relative to.
  Visit visit(const Site& site, const scenarios::CallFacts& facts, std::string_view data_folder);

  /// Such visits as the one with these arguments, which was made before. `facts` null: the first kind of visit.
  Standing standing(const Site& site, const scenarios::CallFacts* facts, std::string_view data_folder);

  /// Counts such a visit, if nothing strikes there and it is beyond the first `shown` ones of its site. False: nothing
  /// was counted.
  bool pass(Standing& standing, std::uint32_t shown);
  /// Straight after pass(): the visit was none.
  void take_back(const Standing& standing);

  /// What was seen in the leaf, for aims that wait for an event. Called in recording order, under the recorder's lock:
  /// records nothing. `index` of a fault whose aim has an `after`. Wakes everyone who asked to be.
  void seen(std::size_t index);
  /// The event of its `after` was not seen yet.
  bool waits(std::size_t index) const;

  /// An event that ends what fault `index` holds was seen. Called like `seen`; wakes everyone who asked to be.
  void release(std::size_t index);
  /// How often that was.
  std::uint64_t releases(std::size_t index) const;
  /// `wake` is called at every release and every `seen`, under the recorder's lock: it records nothing and waits for
  /// nothing. Not any more once the second one has returned.
  std::uint64_t wake_at_release(std::function<void()> wake);
  void forget_wake(std::uint64_t which);

  /// A fault that gives away a limited amount (bytes of a disk), for the whole leaf. `begin` counts once only; before
  /// it nothing is left to ask about.
  void begin(std::size_t index, std::uint64_t amount);
  std::optional<std::uint64_t> left(std::size_t index) const;
  void use(std::size_t index, std::uint64_t amount);  ///< at most what is left
  void give_back(std::size_t index, std::uint64_t amount);

  /// The fault took effect; `evidence` is what its kind's definition demands. Recorded on the lane that was struck.
  /// Firing again is counted, and said when it is undone.
  void fired(std::size_t index, Value evidence);

  /// As `fired`, if `happened` says that it took effect, together with `facts` of its lane; see Recorder::record_if.
  bool fired_if(std::size_t index, const std::function<bool()>& happened, std::vector<Recorder::Fact> facts,
                Value evidence);

  bool has_fired(std::size_t index) const;

  /// The fault's effect is over, and how that is known. A fault that may strike again is over when the leaf is.
  void undone(std::size_t index, const std::string& how);

  /// Ends the leaf: whatever fired and was not undone is undone by the leaf's end; records the `sites` event.
  void finish();

  /// True when some planned fault may still strike `lane` (or is in effect there).
  bool pending(const std::string& lane) const;

  const scenarios::Plan& plan() const { return plan_; }

 private:
  struct Rule {
    std::uint64_t selected = 0;  ///< calls that the aim selected
    std::uint64_t strikes = 0;   ///< times that the fault fired
    std::uint64_t releases = 0;  ///< times that the event of its `until` was seen
    std::optional<std::uint64_t> left = {};
    std::map<std::uint64_t, std::uint64_t> ordinals = {};  ///< of a link: of its connections, among those selected
    bool waits = false;                                    ///< for the event of its `after`
    bool repeats = false;
    bool undone = false;
  };
  bool strikes_at(std::size_t index, std::uint32_t occurrence) const;  ///< of the fault's site
  /// What the fault's aim says of a call, but for which of them and when.
  bool selects(const Fault& fault, const Site& site, const scenarios::CallFacts& facts,
               std::string_view data_folder) const;
  /// Which of the connections that a rule of a link counts this is.
  std::uint64_t ordinal_of(Rule& rule, std::uint64_t connection);
  void conclude(std::size_t index, const std::string& how);
  Value fired_attrs(std::size_t index, Value evidence) const;

  scenarios::Plan plan_;
  Recorder& recorder_;
  mutable std::mutex mutex_;
  std::map<Site, std::uint32_t> counts_;
  std::vector<Rule> rules_;  ///< of the plan's faults, in its order
  std::map<std::uint64_t, std::function<void()>> wakes_;
  std::uint64_t next_wake_ = 1;
};

}  // namespace leafcutter::node
