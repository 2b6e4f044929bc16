# stepsim_charts(TARGET): the chart library of the report as the constant page_charts; empty unless
# STEPSIM_REPORT_CHARTS is on, which needs npm. The lock file fixes every version and holds no
# address, so npm's own settings say where packages come from.
option(STEPSIM_REPORT_CHARTS "Bundle the chart library of the HTML report (needs npm)" OFF)

function(stepsim_charts target)
    set(folder ${CMAKE_BINARY_DIR}/generated/charts)
    set(bundle ${folder}/charts.js)
    file(MAKE_DIRECTORY ${folder})
    if(STEPSIM_REPORT_CHARTS)
        find_program(NPM npm REQUIRED)
        set(source ${CMAKE_SOURCE_DIR}/tools/report)
        set(modules ${folder}/node_modules)
        add_custom_command(OUTPUT ${bundle}
            COMMAND ${CMAKE_COMMAND} -E copy ${source}/package.json ${source}/package-lock.json
                    ${folder}
            COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --silent --prefix ${folder}
            COMMAND ${CMAKE_COMMAND} -E cat ${modules}/vega/build/vega.min.js
                    ${modules}/vega-lite/build/vega-lite.min.js
                    ${modules}/vega-embed/build/vega-embed.min.js > ${bundle}
            DEPENDS ${source}/package.json ${source}/package-lock.json
            COMMENT "Bundling the chart library" VERBATIM)
    else()
        file(CONFIGURE OUTPUT ${folder}/none.js CONTENT "")
        set(bundle ${folder}/none.js)
    endif()
    stepsim_embed(${target} ${bundle} page_charts)
endfunction()
