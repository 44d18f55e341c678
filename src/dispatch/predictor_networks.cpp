// What the networks say of the ways that the cost model finds best.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "dispatch/lanes.h"
#include "dispatch/predictor_parts.h"

namespace gemm {
namespace {

// Ways are asked about, the best by the cost model first, until the next one is slower than the best so far, even if the
// networks shorten it to this share. On 8,000 random problems 0.85 takes 3 % less for choices that are 0.04 % slower, and
// 0.75 takes 3 % more for choices that are 0.03 % faster.
constexpr double kShortened = 0.8;
// Times the best, at which a choice is hopeless in the eyes of one network, of the mean of two, and of three and more.
// 1.2, 1.12 and 1.06 take 4 % more instructions for choices that are 0.005 % faster. (All of this for four networks of 32.)
constexpr std::array kFarBehind = {1.15, 1.08, 1.05};

double hopeless_us(double best_us, size_t networks) {
  return best_us * kFarBehind[std::min(networks, kFarBehind.size()) - 1];
}

// Of the geometric mean of so many ratios, given the sum of their logarithms.
double mean_ratio(float log_ratios, size_t count) {
  return static_cast<double>(std::exp(log_ratios / static_cast<float>(count)));
}

// Puts what the networks' inputs are made of into a lane.
void put(const KernelGroup& group, const GroupWays& ways, size_t from, ChoiceRows& rows, size_t to) {
  const auto& kernels = laid_out_as<cost::KernelNumbers<LaneRow>>(&group.numbers);
  rows.BM[to] = kernels.BM[from], rows.by_BM[to] = kernels.by_BM.inverse[from];
  rows.BN[to] = kernels.BN[from], rows.by_BN[to] = kernels.by_BN.inverse[from];
  rows.BK[to] = kernels.BK[from];
  for (const auto row : {&GroupWays::fixed, &GroupWays::compute, &GroupWays::memory, &GroupWays::latency,
                         &GroupWays::reduction, &GroupWays::us, &GroupWays::split, &GroupWays::how})
    (rows.ways.*row)[to] = (ways.*row)[from];
}

}  // namespace

// The next ones, without those that take longer.
void Predictor::take_round(Ways& ways, double hopeless_us, const CostProblem& problem, Shortlist& list) const {
  const size_t first = list.count;
  ChoiceRows rows;
  for (; list.count < first + kOfRound; ++list.count) {
    const auto next = ways.take(hopeless_us);
    if (!next) break;
    const size_t number = *next / kKernelsAtOnce, lane = *next % kKernelsAtOnce;
    const GroupWays& found = ways.groups[number];
    const Group& group = groups_[ways.origins[number].group];
    list.entries[list.count] = {ways.origins[number].product,
                                group.first + lane,
                                static_cast<int>(found.split[lane]),
                                static_cast<Reduction>(static_cast<int>(found.how[lane])),
                                double{found.us[lane]},
                                0,
                                0,
                                0};
    put(group.kernels, found, lane, rows, list.count - first);
    // Lanes that are left have the first one too: numbers with which one can calculate.
    if (list.count == first)
      for (size_t other = 1; other < kOfRound; ++other) put(group.kernels, found, lane, rows, other);
  }
  if (list.count > first) choice_inputs(rows, problem, device_.sm_count, list.inputs[first / kOfRound]);
}

// Asks a network about entries of the list. Returns the best time of them.
double Predictor::ask(size_t network, std::span<const size_t> places, Products& products, Shortlist& list) const {
  std::array<NetworkQuestion, kShortlist> questions;
  std::array<float, kShortlist> answers;
  for (size_t i = 0; i < places.size(); ++i) {
    const Shortlist::Entry& entry = list.entries[places[i]];
    Product& product = *products.all[entry.product];
    product.show_to(networks_);
    questions[i] = {product.first[network].data(), kernels_[entry.kernel].traits[network].data(),
                    &list.inputs[places[i] / kOfRound][0][places[i] % kOfRound]};
  }
  networks_[network].log_ratios(std::span(questions).first(places.size()), answers.data());
  double best_us = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < places.size(); ++i) {
    Shortlist::Entry& entry = list.entries[places[i]];
    entry.log_ratios += answers[i];
    entry.networks = network + 1;
    entry.us = entry.model_us * mean_ratio(entry.log_ratios, entry.networks) + products.all[entry.product]->copies_us;
    best_us = std::min(best_us, entry.us);
  }
  return best_us;
}

// Fills the list. Network by network, each is asked about what those before it have left. Returns the best time.
double Predictor::correct(Ways& ways, Products& products, Shortlist& list) const {
  std::array<size_t, kShortlist> places;
  size_t count = 0;
  double known_us = std::numeric_limits<double>::infinity(), best_us = known_us;  // known: without any network
  for (size_t round = 0; round < kRounds; ++round) {
    const size_t first = count, first_place = list.count;
    // Copies of operands do not change the sizes, which are all that inputs of choices need of a problem.
    take_round(ways, best_us / kShortened, products.all[0]->problem, list);
    for (size_t place = first_place; place < list.count; ++place) {
      Shortlist::Entry& entry = list.entries[place];
      if (!kernels_[entry.kernel].traits.empty()) {
        places[count++] = place;
        continue;
      }
      entry.us = entry.model_us * std::exp(kernels_[entry.kernel].log_factor) + products.all[entry.product]->copies_us;
      entry.networks = networks_.size();
      known_us = std::min(known_us, entry.us);
    }
    if (count > first) best_us = std::min(best_us, ask(0, std::span(places).subspan(first, count - first), products, list));
    best_us = std::min(best_us, known_us);
    if (list.count < first_place + kOfRound) break;
  }
  for (size_t network = 1; network < networks_.size(); ++network) {
    const auto asked = std::span(places).first(count);
    const double most_us = hopeless_us(best_us, network);
    const auto end = std::remove_if(asked.begin(), asked.end(), [&](size_t i) { return list.entries[i].us > most_us; });
    count = static_cast<size_t>(end - asked.begin());
    best_us = std::min(known_us, ask(network, asked.first(count), products, list));
  }
  return best_us;
}

// 0 where it is not known. Networks are asked as long as it may be faster than the best kernel.
double Predictor::cublas_us(Product& product, double best_us) const {
  if (!knows_cublas_) return 0;
  product.show_to(networks_);
  const CostTerms terms = cublas_terms(device_, product.problem);
  const ChoiceInputs of_cublas = cublas_inputs(terms);
  ChoiceInputRows inputs;  // in the first lane
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i][0] = of_cublas[i];
  float log_ratios = 0;
  double us = 0;
  for (size_t i = 0; i < networks_.size(); ++i) {
    const NetworkQuestion question{product.first[i].data(), networks_[i].cublas->data(), inputs.front().data()};
    float answer;
    networks_[i].log_ratios(std::span(&question, 1), &answer);
    log_ratios += answer;
    us = terms.us() * mean_ratio(log_ratios, i + 1);
    if (us > hopeless_us(best_us, i + 1)) break;
  }
  // Far from what was measured the networks may promise more than the GPU can do.
  return std::max(us, floor_us(device_, product.problem.problem));
}

}  // namespace gemm
