#include "tuner/protocol.h"

#include <array>

#include "tuner/json_forms.h"

namespace gemm {
namespace {

constexpr std::array<const char*, 7> kReplyNames = {"hello", "failed", "begun", "finished", "baselines", "skipped", "done"};
constexpr std::array<const char*, 4> kPhaseNames = {"setup", "build", "run", "turns"};

// The enumerator whose name is `text`; throws when there is none.
template <class Enum, size_t N>
Enum named(const std::array<const char*, N>& names, const std::string& text) {
  for (size_t i = 0; i < N; ++i)
    if (text == names[i]) return static_cast<Enum>(i);
  throw Error("unknown name '" + text + "'");
}

Json reply_body(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::hello:
      return {{"device", to_json(reply.device)}, {"environment", reply.environment}, {"message", reply.message}};
    case Reply::Kind::failed:
    case Reply::Kind::skipped: return {{"message", reply.message}};
    case Reply::Kind::begun: return {{"index", reply.index}, {"phase", kPhaseNames[static_cast<size_t>(reply.phase)]}};
    case Reply::Kind::finished: return {{"index", reply.index}, {"outcome", to_json(reply.outcome)}};
    case Reply::Kind::baselines:
      return {{"cublas_us", reply.baselines.cublas_us},
              {"cublaslt_best_us", reply.baselines.cublaslt_best_us},
              {"cublaslt_algorithm", reply.baselines.cublaslt_algorithm}};
    case Reply::Kind::done: break;
  }
  return Json::object();
}

}  // namespace

std::string to_line(const Request& request) {
  Json choices = Json::array();
  for (const Choice& choice : request.choices) choices.push_back(to_json(choice));
  return Json{{"request", request.kind == Request::Kind::prepare ? "prepare" : "run"},
              {"problem", to_json(request.problem)},
              {"stage", to_string(request.stage)},
              {"ahead", request.ahead},
              {"choices", choices}}
      .dump();
}

std::string to_line(const Reply& reply) {
  Json json = reply_body(reply);
  json["reply"] = kReplyNames[static_cast<size_t>(reply.kind)];
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Request> request_from_line(const std::string& line) {
  try {
    const Json json = Json::parse(line);
    Request request;
    const auto kind = json.at("request").get<std::string>();
    if (kind != "prepare" && kind != "run") return std::nullopt;
    request.kind = kind == "prepare" ? Request::Kind::prepare : Request::Kind::run;
    request.problem = problem_from_json(json.at("problem"));
    request.stage = stage_from_string(json.at("stage").get<std::string>());
    request.ahead = json.at("ahead").get<bool>();
    for (const Json& choice : json.at("choices")) request.choices.push_back(choice_from_json(choice));
    return request;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<Reply> reply_from_line(const std::string& line) {
  try {
    const Json json = Json::parse(line);
    Reply reply;
    reply.kind = named<Reply::Kind>(kReplyNames, json.at("reply").get<std::string>());
    if (json.contains("index")) reply.index = json.at("index").get<int>();
    if (json.contains("phase")) reply.phase = named<Phase>(kPhaseNames, json.at("phase").get<std::string>());
    if (json.contains("outcome")) reply.outcome = outcome_from_json(json.at("outcome"));
    if (json.contains("message")) reply.message = json.at("message").get<std::string>();
    if (json.contains("device")) reply.device = device_info_from_json(json.at("device"));
    if (json.contains("environment")) reply.environment = json.at("environment").get<std::map<std::string, std::string>>();
    if (reply.kind == Reply::Kind::baselines)
      reply.baselines = {json.at("cublas_us").get<std::vector<double>>(),
                         json.at("cublaslt_best_us").get<std::vector<double>>(),
                         json.at("cublaslt_algorithm").get<std::string>()};
    return reply;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace gemm
